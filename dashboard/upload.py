"""Files that a visitor brings: in a folder that only the server's user can read, until the session ends."""

from __future__ import annotations

import re
import shutil
import tempfile
import weakref
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from traceinsight.base.errors import UsageError
from traceinsight.base.units import format_bytes

ENDINGS = ("json", "gz", "zip")

MOST_BYTES = 500 * 1024 * 1024
"""All files of a visitor together: the browser's copy is held in memory until it is written."""

MOST_UNPACKED_BYTES = 16 * 1024**3
"""What a zip archive may say that it holds; traces shrink to a twentieth, not to a thousandth."""

_PREFIX = "traceinsight-upload-"
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 120
_TOO_MUCH = "Start the dashboard on the folder that holds the traces instead: traceinsight dashboard TRACES"


class Uploaded(Protocol):
    """What Streamlit gives for an uploaded file."""

    name: str
    size: int
    file_id: str

    def seek(self, offset: int, /) -> int:
        """As of a file."""
        ...

    def read(self, size: int = -1, /) -> bytes:
        """As of a file."""
        ...


class Folder:
    """A private temporary folder with the files that were uploaded last; gone when closed or at exit."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix=_PREFIX))  # mode 700
        self._kept: tuple[str, ...] = ()
        self._remove = weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def close(self) -> None:
        """Remove the folder."""
        self._remove()

    def keep(self, files: Sequence[Uploaded]) -> Path:
        """Write these files in place of earlier ones, unless they are there; the path to read.

        Raises:
            UsageError: They are too large, or an archive says that it unpacks to more than can be.

        """
        check_size(files)
        wanted = tuple(file.file_id for file in files)
        names = safe_names([file.name for file in files])
        if wanted != self._kept:
            self._kept = ()
            for old in self.path.iterdir():
                old.unlink()
            for file, name in zip(files, names, strict=True):
                file.seek(0)
                with (self.path / name).open("wb") as sink:
                    shutil.copyfileobj(file, sink)
                _check_archive(self.path / name, file.name)
            self._kept = wanted
        return self.path / names[0] if len(names) == 1 else self.path


def is_upload(path: Path) -> bool:
    """Whether a path is such a folder or lies in one."""
    temporary = Path(tempfile.gettempdir())
    inside = path.relative_to(temporary).parts if path.is_relative_to(temporary) else ()
    return bool(inside) and inside[0].startswith(_PREFIX)


def check_size(files: Sequence[Uploaded]) -> None:
    """Refuse more than a browser should send.

    Raises:
        UsageError: All files together are larger than ``MOST_BYTES``.

    """
    total = sum(file.size for file in files)
    if total > MOST_BYTES:
        raise UsageError(
            f"{format_bytes(total)} were uploaded; at most {format_bytes(MOST_BYTES)} are taken.",
            what_to_do=_TOO_MUCH,
        )


def safe_names(names: Sequence[str]) -> list[str]:
    """File names without folders or odd characters; a number in front tells equal ones apart.

    What the reader looks for in a name (its ending, the rank) stays.
    """
    found: list[str] = []
    for name in names:
        last = _UNSAFE.sub("_", name.replace("\\", "/").rpartition("/")[2])[-_LONGEST_NAME:].lstrip(".")
        safe = last or "file"
        taken = {one.lower() for one in found}
        number = 1
        unique = safe
        while unique.lower() in taken:
            number += 1
            unique = f"copy{number}_{safe}"
        found.append(unique)
    return found


def _check_archive(path: Path, name: str) -> None:
    if not zipfile.is_zipfile(path):
        return
    try:
        with zipfile.ZipFile(path) as archive:
            total = sum(member.file_size for member in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        return  # the reader says what is wrong with it
    if total > MOST_UNPACKED_BYTES:
        raise UsageError(
            f"this archive says that it unpacks to {format_bytes(total)}; at most "
            f"{format_bytes(MOST_UNPACKED_BYTES)} are taken.",
            where=name,
            what_to_do=_TOO_MUCH,
        )
