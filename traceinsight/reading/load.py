"""The entry of this package: from paths to the recordings of one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from traceinsight.base.errors import UnreadableInputError, UsageError
from traceinsight.base.notes import DataNote
from traceinsight.reading.manifest import find_manifest
from traceinsight.reading.parallel import read_all
from traceinsight.reading.rank_pattern import check_pattern, ranks_by_pattern
from traceinsight.reading.read_file import FileOutcome
from traceinsight.reading.result import LoadResult
from traceinsight.reading.runs import (
    Candidate,
    Run,
    candidate,
    describe,
    group_runs,
    start_text,
    without_copies,
)
from traceinsight.reading.sources import MANIFEST_NAME, find_sources

Progress = Callable[[int, int, str], None]
_MAX_NAMED = 3


def load(
    paths: str | Path | Sequence[str | Path],
    *,
    run: int | None = None,
    rank_regex: str | None = None,
    workers: int | None = None,
    progress: Progress | None = None,
) -> LoadResult:
    """Reads the traces of one run.

    Args:
        paths: Files, folders (searched to the bottom), glob patterns, zip archives, fsspec URLs, or several.
        run: Which run to take, counted from 1, oldest first; the newest if None. What makes a run:
            :mod:`traceinsight.reading.runs`.
        rank_regex: Pattern with one group that finds the rank in a file's path; wins over the file itself.
        workers: Processes to read with; None chooses, 1 reads in this process.
        progress: Called as ``progress(files_done, files_total, current_file)``.

    Raises:
        UsageError: A path that matches nothing, a bad or endless pattern, no such run.
        UnreadableInputError: Nothing in the input could be read as a trace.

    """
    if rank_regex is not None:
        check_pattern(rank_regex)
    if workers is not None and workers < 1:
        raise UsageError(f"workers must be 1 or more, not {workers}.")
    sources = find_sources(paths)
    wanted = [
        source for source in sources if not source.name.endswith(f"/{MANIFEST_NAME}") or source.explicit
    ]
    names = [source.name for source in wanted]
    ranks = [None] * len(names) if rank_regex is None else ranks_by_pattern(rank_regex, names)
    outcomes = read_all(wanted, ranks, workers, progress)
    notes = [note for outcome in outcomes for note in outcome.notes]
    files = [candidate(found.recording, found.source.directory) for found in outcomes if found.recording]
    if not files:
        raise _nothing_readable(outcomes)
    files, copies = without_copies(files)
    notes += [_copy_note(copy, original) for copy, original in copies]
    runs = group_runs(files)
    number = _chosen(run, len(runs))
    chosen = runs[number - 1]
    notes += _run_notes(runs, number)
    manifest, manifest_notes = find_manifest(file.directory for file in chosen)
    return LoadResult(
        recordings=tuple(file.recording for file in chosen),
        other_runs=tuple(describe(other) for index, other in enumerate(runs, 1) if index != number),
        skipped=(*notes, *manifest_notes),
        manifest=manifest,
    )


def _chosen(run: int | None, count: int) -> int:
    number = count if run is None else run
    if not 1 <= number <= count:
        raise UsageError(
            f"There is no run {number}.", what_to_do=f"Choose one of 1 to {count}, oldest first."
        )
    return number


def _nothing_readable(outcomes: Sequence[FileOutcome]) -> UnreadableInputError:
    notes = [note for outcome in outcomes for note in outcome.notes]
    if not notes:
        return UnreadableInputError(
            "is the truth of a simulated run, and no trace of it is there.",
            where=outcomes[0].source.name,
            what_to_do="Give the traces, or simulate the run again.",
        )
    if len(notes) == 1:
        name = notes[0].file or ""
        return UnreadableInputError(
            notes[0].message.removeprefix(f"{name} "),
            where=name,
            what_to_do="Give a trace that torch.profiler exported (.json, .json.gz or .zip).",
        )
    shown = " ".join(note.message for note in notes[:_MAX_NAMED])
    more = f" (and {len(notes) - _MAX_NAMED} more)" if len(notes) > _MAX_NAMED else ""
    return UnreadableInputError(
        f"None of {len(outcomes)} files could be read as a trace: {shown}{more}",
        what_to_do="Give traces that torch.profiler exported (.json, .json.gz or .zip).",
    )


def _copy_note(copy: Candidate, original: Candidate) -> DataNote:
    message = f"{copy.recording.file} is a copy of {original.recording.file} and was left out."
    return DataNote("info", "duplicate-file", message, rank=copy.rank, file=copy.recording.file)


def _run_notes(runs: Sequence[Run], number: int) -> list[DataNote]:
    chosen = runs[number - 1]
    notes = []
    if len(runs) > 1:
        begun = start_text(min(file.start_ns for file in chosen))
        message = f"The input holds {len(runs)} runs; run {number} of {len(runs)}, begun {begun}, is used."
        notes.append(DataNote("warning", "several-runs", message, count=len(runs)))
    latest_start = max(file.start_ns for file in chosen)
    earliest_end = min(file.end_ns for file in chosen)
    if latest_start > earliest_end:
        gap = (latest_start - earliest_end) / 1e9
        message = f"Not all ranks were captured at the same time ({gap:.3f} s apart): steps may differ."
        notes.append(DataNote("warning", "captures-apart", message))
    return notes
