"""Writing a run: one gzipped trace per rank, ``run.json`` and ``truth.json``; whole or not at all."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from traceinsight.base.errors import UsageError
from traceinsight.simulate.documents import manifest_document, truth_document
from traceinsight.simulate.kineto import TraceWriter
from traceinsight.simulate.run import SimulatedRun

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
        overwrite: Replace the folder's content if it already holds something.
        progress: Called with (files done, files in all, file).

    Raises:
        UsageError: The folder is not empty and ``overwrite`` is false, or it cannot be written.

    """
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())) and not overwrite:
        raise UsageError(
            "is not empty; nothing was written.",
            where=str(target),
            what_to_do="Give a new folder, or allow overwriting.",
        )
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


def _move(draft: Path, target: Path) -> None:
    draft.chmod(0o755)  # mkdtemp's folder is for its owner only
    if target.exists():
        shutil.rmtree(target) if target.is_dir() else target.unlink()
    draft.rename(target)
