"""Sets of time as sorted, disjoint half-open intervals: int64 arrays of shape (n, 2).

Touching intervals are merged, so the flattened boundaries increase strictly and every set of time has
exactly one representation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Spans = NDArray[np.int64]
_Int64 = NDArray[np.int64]
_Bool = NDArray[np.bool_]

EMPTY: Spans = np.empty((0, 2), dtype=np.int64)
EMPTY.flags.writeable = False


def union(start_ns: _Int64, end_ns: _Int64) -> Spans:
    """The time covered by at least one of the intervals [start, end); empty intervals vanish."""
    keep = end_ns > start_ns
    start, end = start_ns[keep], end_ns[keep]
    if not len(start):
        return EMPTY
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    first = np.concatenate(([True], start[1:] > reach[:-1]))
    last = np.concatenate((first[1:], [True]))
    return np.column_stack((start[first], reach[last]))


def single(start_ns: int, end_ns: int) -> Spans:
    """One interval as a set (empty if it has no length)."""
    return np.array([[start_ns, end_ns]], dtype=np.int64) if end_ns > start_ns else EMPTY


def measure(spans: Spans) -> int:
    """Total length in ns."""
    return int((spans[:, 1] - spans[:, 0]).sum())


def intersect(a: Spans, b: Spans) -> Spans:
    """Time in both sets."""
    if not len(a) or not len(b):
        return EMPTY
    return _combine(_near(a, b), _near(b, a), np.logical_and)


def subtract(a: Spans, b: Spans) -> Spans:
    """Time in ``a`` and not in ``b``."""
    if not len(a) or not len(b):
        return a
    return _combine(a, _near(b, a), lambda in_a, in_b: in_a & ~in_b)


def add(a: Spans, b: Spans) -> Spans:
    """Time in at least one of the sets."""
    return _combine(a, b, np.logical_or)


def clip(spans: Spans, start_ns: int, end_ns: int) -> Spans:
    """The part of the set inside [start, end)."""
    first = np.searchsorted(spans[:, 1], start_ns, side="right")
    last = np.searchsorted(spans[:, 0], end_ns, side="left")
    if first >= last or end_ns <= start_ns:
        return EMPTY
    return np.clip(spans[first:last], start_ns, end_ns)


def covered_before(spans: Spans, times_ns: _Int64) -> _Int64:
    """How much of the set lies before each time; shape of ``times_ns``, in ns.

    ``covered_before(s, end) - covered_before(s, start)`` measures the set inside many windows at once.
    """
    if not len(spans):
        return np.zeros(len(times_ns), dtype=np.int64)
    lengths = np.concatenate(([0], np.cumsum(spans[:, 1] - spans[:, 0])))
    index = np.searchsorted(spans[:, 0], times_ns, side="right")
    inside = np.where(index > 0, np.minimum(times_ns - spans[index - 1, 1], 0), 0)
    return np.asarray(lengths[index] + inside, dtype=np.int64)


def contains(spans: Spans, times_ns: _Int64) -> _Bool:
    """Whether each time lies in the set; shape of ``times_ns``."""
    return np.asarray(np.searchsorted(spans.ravel(), times_ns, side="right") % 2 == 1)


def _near(spans: Spans, other: Spans) -> Spans:
    """The part of a set within the extent of another: all that matters when a few spans meet many."""
    return clip(spans, int(other[0, 0]), int(other[-1, 1]))


def _combine(a: Spans, b: Spans, keep: Callable[[_Bool, _Bool], _Bool]) -> Spans:
    """Cut time at every boundary, keep the pieces wanted, merge neighbours."""
    cuts = np.sort(np.concatenate((a.ravel(), b.ravel())))
    piece_starts, piece_ends = cuts[:-1], cuts[1:]  # equal cuts make empty pieces, which union() drops
    wanted = keep(contains(a, piece_starts), contains(b, piece_starts))
    return union(piece_starts[wanted], piece_ends[wanted])
