"""Keeps a result from being written over the traces it is made from."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from traceinsight.base.errors import TraceInsightError
from traceinsight.reading.read_file import NO_TRACE_CODES, read_file
from traceinsight.reading.sources import MANIFEST_NAME, find_sources


def would_lose_input(target: str | Path, paths: Sequence[str]) -> bool:
    """Whether writing to ``target`` would destroy a trace, archive or manifest that loading ``paths`` reads.

    A file that a folder or pattern among ``paths`` finds and that is no trace, as an earlier report, may go.
    """
    there = _stat(target)
    if there is None or not stat.S_ISREG(there.st_mode):
        return False
    if any(_is_at(there, path) for path in paths):
        return True
    try:
        sources = find_sources(paths)
    except TraceInsightError:  # which loading them says better
        return False
    same = [source for source in sources if not source.is_url and _is_at(there, source.path)]
    if any(source.member for source in same):
        return True
    if _is_manifest(there, {source.directory for source in sources if not source.is_url}):
        return True
    outcomes = [read_file(source) for source in same]
    return any({note.code for note in found.notes}.isdisjoint(NO_TRACE_CODES) for found in outcomes)


def _is_manifest(there: os.stat_result, folders: Iterable[str]) -> bool:
    """Manifests are looked for beside the traces and one folder above."""
    around = {above for folder in folders for above in (folder, str(Path(folder).parent))}
    return any(_is_at(there, str(Path(folder) / MANIFEST_NAME)) for folder in around)


def _is_at(there: os.stat_result, path: str) -> bool:
    here = _stat(Path(path).expanduser())
    return here is not None and os.path.samestat(here, there)


def _stat(path: str | Path) -> os.stat_result | None:
    try:
        return Path(path).stat()
    except (OSError, ValueError, RuntimeError):  # not there, no path at all, no such user's home
        return None
