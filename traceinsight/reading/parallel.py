"""Reads many files, in worker processes where that pays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from traceinsight.reading.read_file import FileOutcome, read_file
from traceinsight.reading.sources import Source


def read_all(
    sources: Sequence[Source],
    rank_regex: str | None,
    workers: int | None,
    progress: Callable[[int, int, str], None] | None,
) -> list[FileOutcome]:
    """Reads all sources, in order."""
    outcomes = []
    for done, source in enumerate(sources):
        if progress:
            progress(done, len(sources), source.name)
        outcomes.append(read_file(source, rank_regex))
    if progress and sources:
        progress(len(sources), len(sources), sources[-1].name)
    return outcomes
