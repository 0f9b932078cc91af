"""From what the user named to the files to read: files, folders, globs, archives, fsspec URLs."""

from __future__ import annotations

import os
import re
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from traceinsight.base.errors import UnreadableInputError, UsageError
from traceinsight.reading.archives import Archives, is_zip
from traceinsight.reading.limits import LIMITS
from traceinsight.reading.opening import is_url, odd_kind, open_binary, pipe_descriptor

_TRACE_NAME = re.compile(r"\.(?:json|gz|zip|pftrace)$|\.json\.", re.IGNORECASE)
_GLOB = re.compile(r"[*?\[]")
_FILE_URL = re.compile(r"(?:file|local)://(?=/)")
_KERNEL_FOLDERS = ("/proc", "/sys")
# A bad table, an unknown method, a missing password, a name that is not there.
_ZIP_ERRORS = (zipfile.BadZipFile, NotImplementedError, RuntimeError, KeyError)
MANIFEST_NAME = "run.json"


@dataclass(frozen=True, slots=True)
class Source:
    """One file to read.

    Attributes:
        path: Local path or fsspec URL, as the user named it (or found below what the user named).
        member: Name inside a zip archive, or "".
        size: Bytes of the file (compressed), 0 if unknown.
        explicit: Whether the user named this very file.

    """

    path: str
    member: str = ""
    size: int = 0
    explicit: bool = False

    @property
    def name(self) -> str:
        """What to call it in messages."""
        return f"{self.path}!{self.member}" if self.member else self.path

    @property
    def is_url(self) -> bool:
        """Whether fsspec must open it."""
        return is_url(self.path)

    @property
    def directory(self) -> str:
        """The folder it lies in; an archive counts as a folder."""
        return self.name.replace("!", "/").replace(os.sep, "/").rpartition("/")[0]

    @property
    def is_pipe(self) -> bool:
        """Whether it can be read once only, from the start to the end."""
        return pipe_descriptor(self.path) is not None

    @contextmanager
    def open(self, archives: Archives) -> Iterator[tuple[BinaryIO, int | None]]:
        """The raw bytes, and the packed size when they come out of an archive."""
        if not self.member:
            with open_binary(self.path) as raw:
                yield raw, None
            return
        try:
            archive = archives.open(self.path)
            info = archive.getinfo(self.member)
            packed = archive.open(info)
        except _ZIP_ERRORS as error:
            raise UnreadableInputError(f"cannot be unpacked ({error}).") from error
        with packed:
            yield cast(BinaryIO, packed), info.compress_size


def find_sources(paths: str | Path | Sequence[str | Path]) -> list[Source]:
    """All files named or found, in natural order, each once.

    Raises:
        UsageError: A path or pattern matches nothing.
        UnreadableInputError: A folder holds nothing that could be a trace.

    """
    named = [paths] if isinstance(paths, str | Path) else list(paths)
    if not named:
        raise UsageError("No trace was named.", what_to_do="Name a trace file, a folder, or a pattern.")
    sources: dict[str, Source] = {}
    for entry in named:
        path = _FILE_URL.sub("", str(entry), count=1) if _FILE_URL.match(str(entry)) else str(entry)
        if not path:
            raise UsageError("An empty path was named.", what_to_do="Is a shell variable unset?")
        found = _expand_url(path) if is_url(path) else _expand_local(path)
        for source in found:
            for part in _members(source):
                sources.setdefault(_identity(part), part)
    return sorted(sources.values(), key=lambda source: natural_key(source.name))


def natural_key(text: str) -> list[tuple[int, int, str]]:
    """Sorts rank2 before rank10."""
    return [
        (0, int(part), part) if part.isdecimal() and part.isascii() and len(part) < 30 else (1, 0, part)
        for part in re.split(r"(\d+)", text)
    ]


def _identity(source: Source) -> str:
    return source.name if source.is_url else f"{os.path.realpath(source.path)}!{source.member}"


def _expand_local(path: str) -> list[Source]:
    expanded = os.path.expanduser(path)  # noqa: PTH111  the text must stay as the user wrote it
    if os.path.isdir(expanded):  # noqa: PTH112
        found = [Source(name, size=_size(name)) for name in _walk(expanded)]
        if not found:
            raise UnreadableInputError(
                "holds no .json, .json.gz or .zip file.",
                where=path,
                what_to_do="Name the folder with the traces.",
            )
        return found
    if os.path.exists(expanded):  # noqa: PTH110
        _check_kind(expanded)
        return [Source(expanded, size=_size(expanded), explicit=True)]
    matches = _glob_local(expanded) if _GLOB.search(expanded) else []
    if not matches:
        raise UsageError(
            "matches no file or folder.",
            where=path,
            what_to_do="Check the spelling and the working directory.",
        )
    return [source for match in matches for source in _expand_local(match)]


def _glob_local(pattern: str) -> list[str]:
    import glob  # noqa: PLC0415

    return [
        match
        for match in glob.glob(pattern, recursive=True)  # noqa: PTH207
        if os.path.isfile(match) or (os.path.isdir(match) and any(_walk(match)))  # noqa: PTH112, PTH113
    ]


def _check_kind(path: str) -> None:
    kind = odd_kind(os.stat(path).st_mode)  # noqa: PTH116
    if kind is None or pipe_descriptor(path) is not None:
        return
    raise UsageError(
        f"is {kind}, no file.",
        where=path,
        what_to_do="Name a file, or hand us a pipe: <(command), or command | traceinsight ... /dev/stdin.",
    )


def _walk(folder: str) -> Iterator[str]:
    """Files that may be traces, by name; a folder reached twice (a link in a circle) is entered once.

    Hidden folders are not entered: half-written files and the records of earlier runs lie there.
    The kernel's own folders are not entered: there every process links to the root of all files.
    """
    seen: set[str] = set()
    if _is_of_kernel(os.path.realpath(folder)):
        raise UsageError("shows the state of the system and holds no traces.", where=folder)
    for directory, subdirectories, files in os.walk(folder, followlinks=True):
        real = os.path.realpath(directory)
        if real in seen or _is_of_kernel(real):
            subdirectories.clear()
            continue
        seen.add(real)
        subdirectories[:] = [name for name in subdirectories if not name.startswith(".")]
        if len(seen) > LIMITS.max_folders:
            raise UsageError(
                f"holds more than {LIMITS.max_folders:,} folders.",
                where=folder,
                what_to_do="Name the folder with the traces.",
            )
        for file in files:
            path = os.path.join(directory, file)  # noqa: PTH118
            if _TRACE_NAME.search(file) and os.path.isfile(path):  # noqa: PTH113
                yield path


def _is_of_kernel(real: str) -> bool:
    return real.startswith(tuple(f"{top}/" for top in _KERNEL_FOLDERS)) or real in _KERNEL_FOLDERS


def _hidden(name: str, root: str = "") -> bool:
    """Whether the file lies in a hidden folder below ``root``."""
    *folders, _file = name.removeprefix(root).split("/")
    return any(folder.startswith(".") for folder in folders)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116
    except OSError:
        return 0


def _expand_url(path: str) -> list[Source]:
    import fsspec  # noqa: PLC0415

    try:
        system, root = fsspec.core.url_to_fs(path)
        if _GLOB.search(path):
            matches = system.glob(root)
        elif system.isdir(root):
            matches = [
                name for name in system.find(root) if _TRACE_NAME.search(name) and not _hidden(name, root)
            ]
        else:
            matches = [root] if system.exists(root) else []
        found = [
            Source(
                system.unstrip_protocol(name),
                size=int(system.info(name).get("size") or 0),
                explicit=name == root,
            )
            for name in matches
            if not system.isdir(name)
        ]
    except (ImportError, ValueError, OSError) as error:
        raise UsageError(
            f"cannot be opened ({error}).",
            where=path,
            what_to_do="Check the URL and its file system's package.",
        ) from error
    if not found:
        raise UsageError("matches no file.", where=path, what_to_do="Check the URL and your access to it.")
    return found


def _members(source: Source) -> list[Source]:
    """The source itself, or the files in it when it is a zip archive (by its first bytes)."""
    if source.is_pipe:
        return [source]  # what is read from it to look at is gone
    try:
        with open_binary(source.path) as raw:
            if not is_zip(raw.read(4)):
                return [source]
            raw.seek(0)
            with zipfile.ZipFile(raw) as archive:
                infos = [
                    info for info in archive.infolist() if not info.is_dir() and not _hidden(info.filename)
                ]
    except Exception:  # an unreadable file or archive is reported when it is read
        return [source]
    members = [
        Source(source.path, info.filename, info.compress_size, source.explicit and len(infos) == 1)
        for info in infos
        if _TRACE_NAME.search(info.filename) or len(infos) == 1
    ]
    if len(members) > LIMITS.max_zip_members:
        raise UnreadableInputError(
            f"is an archive of more than {LIMITS.max_zip_members:,} traces.",
            where=source.path,
            what_to_do="Unpack it and name the traces of one run.",
        )
    return members or [source]  # an archive of something else is reported as no trace
