"""Writing a run: one gzipped trace per rank, ``run.json`` and ``truth.json``; whole or not at all."""

from __future__ import annotations

import gzip
import json
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from traceinsight.base.errors import UsageError
from traceinsight.simulate.documents import manifest_document, truth_document
from traceinsight.simulate.kineto import TraceWriter
from traceinsight.simulate.run import SimulatedRun

_OWN_FILE = re.compile(r"rank\d+\.pt\.trace\.json\.gz|run\.json|truth\.json")
_COMPRESSION = 6  # level 9 takes three times as long for 3 % less

Progress = Callable[[int, int, str], None]


def trace_name(rank: int) -> str:
    """The file name of a rank's trace, as ``traceinsight.capture`` gives it."""
    return f"rank{rank}.pt.trace.json.gz"


def write_run(
    run: SimulatedRun, folder: str | Path, *, overwrite: bool = False, progress: Progress | None = None
) -> list[Path]:
    """Write a run; returns the files.

    Everything is written beside the folder first and moved when it is complete.

    Args:
        run: The run.
        folder: Made if it is not there.
        overwrite: Replace an earlier run in the folder. A folder that holds anything else is left alone.
        progress: Called with (files done, files in all, file).

    Raises:
        UsageError: The folder holds something that may not be replaced, or cannot be written.

    """
    target = Path(folder).absolute()
    if not _may_write(target, overwrite):
        what_to_do = (
            "Give a new folder." if overwrite else "Give a new folder; --force replaces a simulated run."
        )
        raise UsageError("holds something; nothing was written.", where=str(folder), what_to_do=what_to_do)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        draft = Path(mkdtemp(prefix=f".{target.name}.", dir=target.parent))
        try:
            names = _write_all(run, draft, progress)
            _move(draft, target)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    except OSError as error:
        raise UsageError(
            f"cannot be written: {error.strerror}.", where=str(target), what_to_do="Give another folder."
        ) from None
    return [target / name for name in names]


def _write_all(run: SimulatedRun, draft: Path, progress: Progress | None) -> list[str]:
    writer = TraceWriter(run)
    ranks = [rank for rank in range(run.spec.world_size) if rank not in set(run.spec.capture.missing_ranks)]
    for done, rank in enumerate(ranks):
        data = gzip.compress(writer.text(rank).encode(), _COMPRESSION, mtime=0)
        (draft / trace_name(rank)).write_bytes(data)
        if progress is not None:
            progress(done + 1, len(ranks), trace_name(rank))
    documents: Mapping[str, dict[str, Any]] = {
        "run.json": manifest_document(run),
        "truth.json": truth_document(run),
    }
    for name, document in documents.items():
        (draft / name).write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")
    return [*(trace_name(rank) for rank in ranks), *documents]


def _may_write(target: Path, overwrite: bool) -> bool:
    """A new or empty folder always; one with an earlier run, and nothing else in it, when that is allowed."""
    if not target.exists():
        return True
    if not target.is_dir():
        return False
    names = [path.name for path in target.iterdir()]
    return not names or (overwrite and all(_OWN_FILE.fullmatch(name) for name in names))


def _move(draft: Path, target: Path) -> None:
    if not target.exists():
        draft.chmod(0o755)  # mkdtemp's folder is for its owner only
        draft.rename(target)
        return
    for old in list(target.iterdir()):
        old.unlink()
    for path in list(draft.iterdir()):
        path.rename(target / path.name)
