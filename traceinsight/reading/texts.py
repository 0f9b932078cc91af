"""Bounds the length of texts without making two of them one."""

from __future__ import annotations

from hashlib import blake2b

MAX_NAME_LENGTH = 4096
"""Longest name of an event, thread, device or process group, in characters. Mangled C++ names reach 3000."""


def shortened(text: str, length: int = MAX_NAME_LENGTH) -> str:
    """``text``, or its beginning with the size and a checksum of the whole: at most ``length`` in all."""
    if len(text) <= length:
        return text
    checksum = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()
    mark = f"... [{len(text)} characters, {checksum}]"
    return text[: length - len(mark)] + mark
