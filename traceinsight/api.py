"""The public functions. Each takes what a user has and returns a typed result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from traceinsight import __version__
from traceinsight.diagnosis import Diagnosis, OtherRun
from traceinsight.diagnosis.prediction import WhatIf
from traceinsight.engine import diagnose as diagnose_trace_set
from traceinsight.engine.whatif import what_if
from traceinsight.reading import load as read
from traceinsight.replay.edits.registry import edit_lines
from traceinsight.trace.assemble import assemble
from traceinsight.trace.trace_set import TraceSet

Paths = str | Path | Sequence[str | Path]
Progress = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Loaded:
    """One run, ready to be analysed, and the other runs that were found beside it."""

    trace_set: TraceSet
    other_runs: tuple[OtherRun, ...]


def load(
    paths: Paths,
    *,
    run: int | None = None,
    rank_regex: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Loaded:
    """Read the traces of one run.

    Args:
        paths: Files, folders, globs or fsspec URLs.
        run: Which run to take when several are found, 1 = oldest; the newest by default.
        rank_regex: Finds the rank in a file name (one group); wins over what the file says.
        workers: Processes to read with; None chooses by size and cores.
        progress: Called with (files done, files in all, current file).

    Raises:
        UsageError: A path matches nothing, or ``run`` does not exist.
        UnreadableInputError: No usable trace was found.

    """
    result = read(paths, run=run, rank_regex=rank_regex, workers=workers, progress=progress)
    trace_set = assemble(result.recordings, manifest=result.manifest, notes=result.skipped)
    picked = len(result.other_runs) + 1 if run is None else run
    indices = [index for index in range(1, len(result.other_runs) + 2) if index != picked]
    others = tuple(
        OtherRun(index=index, files=list(other.files), ranks=list(other.ranks), start=other.start)
        for index, other in zip(indices, result.other_runs, strict=True)
    )
    return Loaded(trace_set, others)


def diagnose(loaded: Loaded) -> Diagnosis:
    """Analyse a loaded run."""
    return diagnose_trace_set(loaded.trace_set, version=__version__, other_runs=loaded.other_runs)


def whatif(loaded: Loaded, edits: Sequence[str]) -> WhatIf:
    """Predict the step time of a loaded run after these edits, applied in order.

    Raises:
        UsageError: An edit is unknown or its value is wrong.

    """
    return what_if(loaded.trace_set, edits, loaded.other_runs)


def edit_help() -> list[str]:
    """One line per edit that :func:`whatif` knows."""
    return edit_lines()


def analyze(
    paths: Paths,
    *,
    run: int | None = None,
    rank_regex: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Diagnosis:
    """Read and analyse one run; arguments and errors as for :func:`load`."""
    return diagnose(load(paths, run=run, rank_regex=rank_regex, workers=workers, progress=progress))
