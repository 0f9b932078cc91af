"""Zip archives, and how to tell them and other packed files that are no trace."""

from __future__ import annotations

import zipfile
from contextlib import ExitStack
from types import TracebackType

from traceinsight.reading.bytestream import GZIP_MAGIC, ZIP_MAGICS
from traceinsight.reading.opening import open_binary

_PACKERS = {
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\xfd7zXZ\x00": "xz",
    b"BZh": "bzip2",
    b"\x04\x22\x4d\x18": "lz4",
    b"7z\xbc\xaf\x27\x1c": "7-zip",
    b"Rar!": "rar",
}
_TAR_MAGIC = slice(257, 262)


class Archives:
    """Keeps the archive that was read last open: its table of contents is parsed once, not per member."""

    def __init__(self) -> None:
        self._path: str | None = None
        self._archive: zipfile.ZipFile | None = None
        self._open = ExitStack()

    def __enter__(self) -> Archives:
        """Opens nothing yet."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes what is open."""
        self._close()

    def open(self, path: str) -> zipfile.ZipFile:
        """The archive at this path. Raises what ``zipfile`` and the file system raise."""
        if self._archive is None or path != self._path:
            self._close()
            raw = self._open.enter_context(open_binary(path))
            self._archive = self._open.enter_context(zipfile.ZipFile(raw))
            self._path = path
        return self._archive

    def _close(self) -> None:
        self._archive = None
        self._open.close()


def fault_of(path: str) -> str | None:
    """Why the zip archive at this path cannot be opened, or None when it can."""
    try:
        with Archives() as archives:
            archives.open(path)
    except Exception as error:  # zipfile raises a dozen kinds for damaged tables
        return str(error) or type(error).__name__
    return None


def is_zip(head: bytes) -> bool:
    """Whether a text that begins like this is a zip archive."""
    return head.startswith(ZIP_MAGICS)


def packed_with(head: bytes) -> str | None:
    """The program that packed a text that begins like this; None for a zip archive and for no packed file."""
    if head.startswith(GZIP_MAGIC):
        return "gzip"
    if head[_TAR_MAGIC] == b"ustar":
        return "tar"
    return next((name for magic, name in _PACKERS.items() if head.startswith(magic)), None)
