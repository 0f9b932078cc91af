"""Which traces may be opened: those of the path given at the start, and nothing outside it."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from traceinsight.base.errors import UsageError

_TRACE_ENDINGS = (".json", ".json.gz", ".zip", ".gz")
_DEEPEST, _MOST = 4, 200  # levels and folders that are offered; more would be no menu
_EDGE_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """Two readings with equal fingerprints give the same: the path, and a digest of its files."""

    path: str
    digest: str


@dataclass(frozen=True, slots=True)
class Root:
    """The folder or file that the dashboard was started with."""

    path: Path

    def choices(self) -> list[str]:
        """Relative paths of folders with traces, the given one ("") first."""
        found = [""]
        if self.path.is_file():
            return found
        for folder, folders, files in os.walk(self.path):
            here = Path(folder)
            depth = len(here.relative_to(self.path).parts)
            folders[:] = sorted(one for one in folders if not one.startswith(".")) if depth < _DEEPEST else []
            if depth and any(name.endswith(_TRACE_ENDINGS) for name in files):
                found.append(here.relative_to(self.path).as_posix())
            if len(found) >= _MOST:
                break
        return found

    def resolve(self, relative: str) -> Path:
        """The path to read.

        Raises:
            UsageError: It lies outside the root (by "..", an absolute path, a link), or is not there.

        """
        if "\0" in relative:
            raise UsageError("a path cannot hold a NUL character.")
        root = self.path.resolve()
        target = (root / relative).resolve() if relative else root
        if not target.is_relative_to(root):
            raise UsageError(
                "this path is outside the folder that the dashboard was started with.",
                where=relative,
                what_to_do="Start the dashboard with the folder that holds it.",
            )
        if not target.exists():
            raise UsageError("there is no such file or folder.", where=relative or str(self.path))
        return target


def open_root(arguments: list[str]) -> Root:
    """The one path of the command line.

    Raises:
        UsageError: None or several are given, or it is not there.

    """
    if len(arguments) != 1:
        raise UsageError(
            f"give one folder, trace file or JSON report, not {len(arguments)}.",
            what_to_do="Start it with: traceinsight dashboard TRACES",
        )
    path = Path(arguments[0]).expanduser()
    if not path.exists():
        raise UsageError("there is no such file or folder.", where=arguments[0])
    return Root(path)


def fingerprint(path: Path) -> Fingerprint:
    """Cheap even for gigabytes: size, time of change, and both ends of every file."""
    digest = hashlib.blake2b(digest_size=16)
    files = [path] if path.is_file() else sorted(one for one in path.rglob("*") if one.is_file())
    for file in files:
        facts = file.stat()
        digest.update(f"{file}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode())
        with file.open("rb") as stream:
            digest.update(stream.read(_EDGE_BYTES))
            if facts.st_size > _EDGE_BYTES:
                stream.seek(-_EDGE_BYTES, os.SEEK_END)
                digest.update(stream.read(_EDGE_BYTES))
    return Fingerprint(str(path), digest.hexdigest())
