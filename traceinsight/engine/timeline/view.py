"""Level of detail: what of a timeline can be told apart in a window of so many pixel columns.

Pieces at least one column wide are kept. Shorter ones are put together by column, and neighbouring columns
of one category become one piece. So a row has at most two pieces per column, whatever it holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceinsight.engine.timeline.rows import CATEGORIES, PathRow, Row, Timeline
from traceinsight.trace.recording import MISSING, Int8, Int32, Int64


@dataclass(frozen=True, slots=True)
class Pieces:
    """What to draw of one row; columns of shape (n_pieces,), in order of time, clipped to the window.

    ``count`` is how many pieces of the row each stands for, ``busy_ns`` their summed length: less than its
    own length where there were gaps too short to draw. ``name`` is that of the longest of them, ``ranks``
    its rank. ``row`` is a position in ``Timeline.rows``, MISSING for the critical path.
    """

    row: int
    start_ns: Int64
    end_ns: Int64
    category: Int8
    name: Int32
    ranks: Int32
    count: Int64
    busy_ns: Int64


@dataclass(frozen=True, slots=True)
class View:
    """A window of a timeline; times are ns after the timeline's origin."""

    start_ns: int
    end_ns: int
    rows: tuple[Pieces, ...]
    critical_path: Pieces | None


def view(timeline: Timeline, start_ns: int, end_ns: int, *, ranks: Sequence[int], columns: int) -> View:
    """What can be seen of some ranks between two moments.

    Raises:
        ValueError: The window is empty, or has no column.

    """
    if end_ns <= start_ns or columns < 1:
        raise ValueError(f"no window: {start_ns} to {end_ns} ns in {columns} columns")
    wanted = set(ranks)
    window = (start_ns, end_ns)
    path = timeline.critical_path
    return View(
        start_ns=start_ns,
        end_ns=end_ns,
        rows=tuple(
            _pieces(row, number, window, columns)
            for number, row in enumerate(timeline.rows)
            if row.rank in wanted
        ),
        critical_path=None if path is None else _pieces(path, MISSING, window, columns),
    )


def _pieces(row: Row, number: int, window: tuple[int, int], columns: int) -> Pieces:
    low = int(np.searchsorted(row.end_ns, window[0], side="right"))
    high = int(np.searchsorted(row.start_ns, window[1], side="left"))
    seen = slice(low, max(low, high))
    start = np.maximum(row.start_ns[seen], window[0])
    end = np.minimum(row.end_ns[seen], window[1])
    ranks = row.ranks[seen] if isinstance(row, PathRow) else np.full(len(start), row.rank, dtype=np.int32)
    width = (window[1] - window[0]) / columns
    column = np.minimum(((start - window[0]) / width).astype(np.int64), columns - 1)
    group = _groups(start, end, row.category[seen], ranks, column, width)
    if not len(group):
        nothing = np.empty(0, dtype=np.int64)
        return Pieces(
            number, start, end, row.category[seen], row.name[seen], ranks, count=nothing, busy_ns=nothing
        )
    first = np.flatnonzero(np.diff(group, prepend=-1))
    last = np.append(first[1:], len(group)) - 1
    busy = np.add.reduceat(end - start, first)
    shown = _longest(end - start, group)
    return Pieces(
        row=number,
        start_ns=start[first],
        end_ns=end[last],
        category=row.category[seen][shown],
        name=row.name[seen][shown],
        ranks=ranks[shown],
        count=last - first + 1,
        busy_ns=busy,
    )


def _groups(start: Int64, end: Int64, category: Int8, ranks: Int32, column: Int64, width: float) -> Int64:
    """Number of the drawn piece that each piece becomes part of, ascending.

    A piece one column wide or wider stays alone. Small neighbours in one column become one, whatever they
    are; then, small ones of one category and rank whose gap is below a column become one across columns.
    """
    if not len(start):
        return np.empty(0, dtype=np.int64)
    small = (end - start) < width
    both = small[1:] & small[:-1]
    by_column = _number(~(both & (column[1:] == column[:-1])))
    shown = _longest(end - start, by_column)[by_column]
    kind = category[shown].astype(np.int64) + len(CATEGORIES) * ranks[shown].astype(np.int64)
    joined = both & (kind[1:] == kind[:-1]) & (start[1:] - end[:-1] < width)
    return _number(~(joined | (by_column[1:] == by_column[:-1])))


def _number(breaks: NDArray[np.bool_]) -> Int64:
    """0, and one more after each break."""
    return np.concatenate(([0], np.cumsum(breaks)))


def _longest(length: Int64, group: Int64) -> Int64:
    """Position of the longest piece of each group (the first of several)."""
    order = np.lexsort((np.arange(len(group)), -length, group))
    return order[np.flatnonzero(np.diff(group[order], prepend=-1))]
