"""What loading returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from traceinsight.base.notes import DataNote
from traceinsight.trace.recording import Recording


@dataclass(frozen=True, slots=True)
class OtherRun:
    """A run found beside the loaded one.

    Attributes:
        files: Its files.
        ranks: Their ranks, in the same order.
        start: When it began: ISO 8601 in UTC, or seconds on the trace's clock if that is no date.

    """

    files: tuple[str, ...]
    ranks: tuple[int | None, ...]
    start: str


@dataclass(frozen=True, slots=True)
class LoadResult:
    """One run.

    Attributes:
        recordings: Its ranks, ascending.
        other_runs: Every other run found, oldest first.
        skipped: Notes on files that are not part of ``recordings``, and on the set of files.
        manifest: The parsed ``run.json`` beside the traces, or None.

    """

    recordings: tuple[Recording, ...]
    other_runs: tuple[OtherRun, ...]
    skipped: tuple[DataNote, ...]
    manifest: Mapping[str, object] | None
