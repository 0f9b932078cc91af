"""Text from traces is untrusted: kernel names, annotations and file names are whatever a job wrote.

Everything a report shows passes :func:`clean`; each format then escapes its own syntax.
"""

from __future__ import annotations

import re
import unicodedata

NAME_LIMIT = 96
"""Characters of a kernel, annotation or file name: templates run to thousands, the head says which it is."""

PROSE_LIMIT = 1200
"""Characters of a paragraph. The longest of ours has about 700; only names inside it can exceed this."""

_WORD_LIMIT = 120
_WORD_TAIL = 30

# Whole sequences, so that their letters and numbers vanish with the escape character: CSI, OSC, the rest.
_ESCAPE_SEQUENCE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|(?:\x1b\]|\x9d)[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)?|\x1b[@-Z\\-_]?"
)
_MAX_COMBINING = 2  # in a row; more of them paint over the lines above and below


def clean(text: str, limit: int = PROSE_LIMIT, *, tail: int = 0) -> str:
    """One line of visible text: no escape sequences, control, bidirectional or invisible characters.

    A text longer than ``limit`` is cut with ``...``; the last ``tail`` characters are kept.
    """
    if len(text) > limit * 10:  # a 1 MB name must not cost a second, and most of it would be cut anyway
        text = text[: limit * 5] + text[-limit * 5 :]
    text = _ESCAPE_SEQUENCE.sub("", text)
    words = "".join(_visible(text)).split()
    return _cut(" ".join(_cut(word, _WORD_LIMIT, _WORD_TAIL) for word in words), limit, tail)


def _cut(text: str, limit: int, tail: int) -> str:
    if len(text) <= limit:
        return text
    return f"{text[: limit - tail - 3]}...{text[len(text) - tail :]}"


def file_name(path: str) -> str:
    """A path with both its ends: the folder says which run, the end which rank."""
    return clean(path, NAME_LIMIT, tail=NAME_LIMIT // 2)


def kernel_name(name: str, limit: int) -> str:
    """A kernel without the words that all kernels share."""
    return clean(re.sub(r"^void |\(anonymous namespace\)::", "", name), limit)


def _visible(text: str) -> list[str]:
    kept: list[str] = []
    combining = 0
    for character in text:
        category = unicodedata.category(character)
        combining = combining + 1 if category in {"Mn", "Me"} else 0
        if character.isspace() or category in {"Zl", "Zp"}:
            kept.append(" ")
        elif category not in {"Cc", "Cf", "Cs", "Co", "Cn"} and combining <= _MAX_COMBINING:
            kept.append(character)
    return kept
