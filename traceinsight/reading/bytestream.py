"""The decompressed text of one file, in blocks: plain or gzip (by magic bytes), bounded, damage noted."""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from isal import isal_zlib

from traceinsight.base.errors import UnreadableInputError
from traceinsight.reading.limits import Limits

GZIP_MAGIC = b"\x1f\x8b"
ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")  # the first file in it; the end of an archive without one
UTF8_BOM = b"\xef\xbb\xbf"
_INPUT_BYTES = 1 << 20
_KEPT_HEAD_BYTES = 512
_HEAD_BYTES = 4  # enough to tell the kind by; some file systems hand out less at a time
_LEAST_INPUT_BYTES = 1 << 10
_ZEROS = re.compile(rb"\0*+")


class TextStream:
    """Reads ``raw`` as text blocks; never raises for damaged data, but says so in :attr:`damage`.

    Attributes:
        damage: Why the text ended before the file was whole, or None.
        text_bytes: Decompressed bytes handed out so far.
        head: The first bytes of the text, enough to tell what else it may be.
        gzipped: Whether the text was packed with gzip.

    """

    def __init__(self, raw: BinaryIO, name: str, limits: Limits, compressed_size: int | None = None) -> None:
        self.damage: str | None = None
        self.text_bytes = 0
        self.head = b""
        self.gzipped = False
        self._raw = raw
        self._name = name
        self._limits = limits
        self._raw_bytes = 0
        self._compressed_size = compressed_size  # of a zip member, whose raw bytes are already text

    def blocks(self) -> Iterator[bytes]:
        """Blocks of about ``limits.block_bytes``; the last may be shorter."""
        parts: list[bytes] = []
        held = 0
        for part in self._checked_parts():
            parts.append(part)
            held += len(part)
            if held >= self._limits.block_bytes:
                yield b"".join(parts)
                parts, held = [], 0
        if parts:
            yield b"".join(parts)

    def _checked_parts(self) -> Iterator[bytes]:
        budget = self._limits.text_budget()
        first = True
        for part in self._parts():
            text = part.removeprefix(UTF8_BOM) if first else part
            if first:
                self.head = text[:_KEPT_HEAD_BYTES]
            first = False
            self.text_bytes += len(text)
            if self.text_bytes > budget:
                raise UnreadableInputError(
                    f"holds more than {budget / 1e9:.1f} GB of text, more than fits the free memory.",
                    where=self._name,
                    what_to_do="Capture fewer steps, or read it on a machine with more memory.",
                )
            self._check_ratio()
            yield text

    def _check_ratio(self) -> None:
        packed = self._compressed_size if self._compressed_size is not None else self._raw_bytes
        if self.text_bytes < self._limits.ratio_from_bytes:
            return
        if self.text_bytes > self._limits.max_ratio * max(packed, 1):
            raise UnreadableInputError(
                f"expands more than {self._limits.max_ratio:.0f}-fold, as no profiler trace does.",
                where=self._name,
                what_to_do="It looks like a decompression bomb; unpack it yourself if you trust it.",
            )

    def _read(self) -> bytes:
        try:
            data = self._raw.read(_INPUT_BYTES)
        except (OSError, EOFError, ValueError, zlib.error, RuntimeError, NotImplementedError) as error:
            # zipfile reports a bad checksum, an unknown method or a missing password this way.
            self.damage = f"reading failed after {self._raw_bytes} bytes ({error})"
            return b""
        except Exception as error:  # zipfile.BadZipFile, and whatever a remote file system raises
            self.damage = f"reading failed after {self._raw_bytes} bytes ({type(error).__name__}: {error})"
            return b""
        self._raw_bytes += len(data)
        return data

    def _parts(self) -> Iterator[bytes]:
        head = self._read()
        while 0 < len(head) < _HEAD_BYTES and (more := self._read()):
            head += more
        if head.startswith(GZIP_MAGIC):
            self.gzipped = True
            yield from self._gunzip(head)
            return
        while head:
            yield head
            head = self._read()

    def _gunzip(self, data: bytes) -> Iterator[bytes]:
        """Member after member, with zeros allowed between them.

        At the end of a member the decoder hands back what it was given too much. So a member is fed in pieces
        of a size that its predecessor suggests, doubled while it goes on: else a file of many tiny members
        would be copied once per member.
        """
        at, piece = 0, _INPUT_BYTES
        while True:
            decoder = isal_zlib.decompressobj(wbits=31)
            taken = 0  # compressed bytes of this member
            full = False  # whether the decoder may hold more text than it gave
            while not decoder.eof:
                if at == len(data) and not full:
                    data, at = self._read(), 0
                    if not data:
                        self.damage = (
                            self.damage or f"gzip stream cut off at compressed byte {self._raw_bytes}"
                        )
                        return
                fed = data[at : at + piece]
                try:
                    text = decoder.decompress(fed, _INPUT_BYTES)
                except isal_zlib.error as error:  # type: ignore[misc]  # a variable in the stubs
                    where = self._raw_bytes - len(data) + at
                    self.damage = f"gzip data damaged near compressed byte {where} ({error})"
                    return
                used = len(fed) - len(decoder.unconsumed_tail) - len(decoder.unused_data)
                at, taken = at + used, taken + used
                piece = min(2 * piece, _INPUT_BYTES)
                full = len(text) == _INPUT_BYTES
                if text:
                    yield text
            piece = min(max(2 * taken, _LEAST_INPUT_BYTES), _INPUT_BYTES)
            data, at = self._next_member(data, at)
            if not data:
                return

    def _next_member(self, data: bytes, at: int) -> tuple[bytes, int]:
        """Where the next member begins, or no data: at the end, or when something else follows."""
        while (at := _ZEROS.match(data, at).end()) == len(data):  # type: ignore[union-attr]  # always matches
            data, at = self._read(), 0
            if not data:
                return b"", 0
        if GZIP_MAGIC.startswith(data[at : at + len(GZIP_MAGIC)]):
            return data, at
        where = self._raw_bytes - len(data) + at
        self.damage = f"data after the end of the gzip stream near compressed byte {where}"
        return b"", 0
