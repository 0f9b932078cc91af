"""The public functions. Each takes what a user has and returns a typed result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from traceinsight import __version__
from traceinsight.base.errors import UsageError
from traceinsight.diagnosis import Diagnosis, OtherRun
from traceinsight.diagnosis.comparison import Comparison
from traceinsight.diagnosis.placement import Placement
from traceinsight.diagnosis.prediction import WhatIf
from traceinsight.diagnosis.scaling import Scaling
from traceinsight.engine import diagnose as diagnose_trace_set
from traceinsight.engine.comparison import compare as compare_diagnoses
from traceinsight.engine.comparison import parse_limit
from traceinsight.engine.placement import propose_placement
from traceinsight.engine.scaling import MeasuredRun, measure, require_several, scale
from traceinsight.engine.timeline import CATEGORIES, PathRow, Pieces, Row, Timeline, View, timeline_of, view
from traceinsight.engine.whatif import what_if
from traceinsight.reading import load as read
from traceinsight.reading.diagnosis_file import read_diagnosis
from traceinsight.replay.edits.registry import edit_lines, parse_edit
from traceinsight.trace.assemble import assemble
from traceinsight.trace.trace_set import TraceSet

__all__ = [
    "CATEGORIES", "Loaded", "PathRow", "Pieces", "Row", "Timeline", "View",
    "analyze", "check_comparison", "compare", "diagnose", "edit_help", "load", "load_run", "placement",
    "timeline", "view", "whatif",
]  # fmt: skip

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
    return what_if(loaded.trace_set, edits, loaded.other_runs, version=__version__)


def placement(loaded: Loaded) -> Placement:
    """Place the shards of a loaded run anew, by what each costs; without costs ``reason`` says why not."""
    return propose_placement(loaded.trace_set)


def compare(
    before: Loaded | Diagnosis,
    after: Loaded | Diagnosis,
    edits: Sequence[str] = (),
    *,
    fail_on: Sequence[str] = (),
) -> Comparison:
    """Say what changed between two runs, and what of it is more than the noise of their steps.

    Args:
        before: The run to compare with.
        after: The run to judge.
        edits: What was changed between them, as for :func:`whatif`; predicted from ``before``, where that is
            a report from its roadmap or a finding's gain, and held against ``after``.
        fail_on: Limits such as ``regression=5%``; their results stand in ``gates``.

    Raises:
        UsageError: An edit or a limit is wrong, or a report ``before`` holds no prediction for the edits.

    """
    limits = [parse_limit(text) for text in fail_on]
    predicted = whatif(before, edits) if edits and isinstance(before, Loaded) else None
    return compare_diagnoses(
        *(one if isinstance(one, Diagnosis) else diagnose(one) for one in (before, after)),
        version=__version__,
        edits=edits,
        predicted=predicted,
        limits=limits,
    )


def check_comparison(edits: Sequence[str], fail_on: Sequence[str]) -> None:
    """Refuse what :func:`compare` would refuse, before the runs are read.

    Raises:
        UsageError: An edit or a limit is wrong.

    """
    for edit in edits:
        parse_edit(edit)
    for limit in fail_on:
        parse_limit(limit)


def load_run(
    path: str | Path,
    *,
    run: int | None = None,
    rank_regex: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Loaded | Diagnosis:
    """One side of a comparison: traces as for :func:`load`, or what ``analyze --format json`` wrote.

    Raises:
        UsageError: As for :func:`load`; or ``run`` is given with a report, which holds one run.
        UnreadableInputError: No usable trace was found, or the report is damaged or of another version.

    """
    report = read_diagnosis(Path(path))
    if report is None:
        return load(path, run=run, rank_regex=rank_regex, workers=workers, progress=progress)
    if run is not None:
        raise UsageError("a JSON report holds one run; there is none to choose.", where=str(path))
    return report


def timeline(loaded: Loaded) -> Timeline:
    """All ranks of a loaded run on one clock, with the critical path; :func:`view` cuts windows out of it."""
    return timeline_of(loaded.trace_set)


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


def scaling(
    runs: Sequence[str | Path] | Mapping[str, str | Path],
    *,
    rank_regex: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Scaling:
    """Compare runs of one job at several world sizes, each a folder, file, glob or URL.

    A mapping gives each run a name to show; else it is shown by its path.
    Runs are read one after the other; of one that holds several runs the newest is taken, and that is noted.
    ``progress`` starts anew with each run.

    Raises:
        UsageError: Fewer than two runs, two of one size, or a path matches nothing.
        UnreadableInputError: A run cannot be read, or fewer than two can be compared.

    """

    def measured(name: str, path: str | Path) -> MeasuredRun:
        loaded = load(path, rank_regex=rank_regex, workers=workers, progress=progress)
        return measure(name, diagnose(loaded), loaded.trace_set.manifest)

    require_several(len(runs))
    named = list(runs.items()) if isinstance(runs, Mapping) else [(str(path), path) for path in runs]
    return scale([measured(name, path) for name, path in named], version=__version__)
