"""Which entries of two ranks' series of one kind of collective belong together.

In order; but where one rank holds fewer than another, or payloads contradict, order alone would shift every
later pair by one. Then the ends decide: members of a synchronising collective end together, whenever they
began.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceinsight.trace.recording import MISSING, Int64

END_AGREEMENT_NS = 1_000_000
"""Paired in order, ends may differ by this much before another pairing is tried (1 ms: NCCL's ends agree
within tens of microseconds, gloo's within hundreds)."""

BAND = 50
"""How far two ranks' series may drift apart beyond their difference in length: kernels lost on both."""

MAX_CELLS = 20_000_000
"""Above this, series are paired from their ends without search: memory stays bounded."""


@dataclass(frozen=True, slots=True)
class Series:
    """One rank's collectives of one kind, in order of launch; arrays of shape (n,).

    ``end_ns`` is on a roughly common clock. ``size_bytes`` is what all members must put in alike and
    ``element_bytes`` the size of the payload's type; ``MISSING`` where not recorded or not alike.
    """

    end_ns: Int64
    size_bytes: Int64
    element_bytes: Int64

    def __len__(self) -> int:
        """Number of collectives."""
        return len(self.end_ns)


def pair(ours: Series, theirs: Series) -> list[tuple[int, int]]:
    """Pairs of positions in order; ``ours`` is at least as long as ``theirs``."""
    equal = len(ours) == len(theirs)
    in_order = [(position, position) for position in range(len(theirs))]
    agreeing = _agreeing(ours, theirs, in_order)
    if equal and agreeing == len(in_order):
        return in_order
    if len(ours) * _width(ours, theirs) > MAX_CELLS:
        surplus = len(ours) - len(theirs)
        return [(position + surplus, position) for position in range(len(theirs))]
    aligned = _align(ours, theirs)
    # A real pair may end far apart: order is given up only for more pairs that agree, or where few do.
    if equal and 2 * agreeing >= len(in_order) and _agreeing(ours, theirs, aligned) <= agreeing:
        every = np.arange(len(ours))
        different = _differ(ours, theirs, every, every)
        return [one for one in in_order if not different[one[0]]]
    return aligned


def _agreeing(ours: Series, theirs: Series, pairs: Sequence[tuple[int, int]]) -> int:
    """How many pairs end together and could be of one collective."""
    mine, other = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    near = np.abs(ours.end_ns[mine] - theirs.end_ns[other]) <= END_AGREEMENT_NS
    return int((near & ~_differ(ours, theirs, mine, other)).sum())


def _differ(ours: Series, theirs: Series, mine: Int64, other: Int64) -> NDArray[np.bool_]:
    """Whether payloads at these positions are known and cannot be of one collective."""
    found = np.zeros(np.broadcast_shapes(mine.shape, other.shape), dtype=np.bool_)
    for one, two in ((ours.size_bytes, theirs.size_bytes), (ours.element_bytes, theirs.element_bytes)):
        found |= (one[mine] != MISSING) & (two[other] != MISSING) & (one[mine] != two[other])
    return found


def _width(ours: Series, theirs: Series) -> int:
    return len(ours) - len(theirs) + 2 * BAND + 1


def _align(ours: Series, theirs: Series) -> list[tuple[int, int]]:
    """Order-preserving pairs with the least disagreement of ends (dynamic programming within a band).

    Payloads that differ are never paired. Leaving one out costs as much as a disagreement of
    ``END_AGREEMENT_NS`` or three times the usual distance to the nearest end, whichever is more: real kernels
    are kept together even where ends spread.

    ``total[i, k]`` is the least cost of aligning the first i of ours with the first j of theirs, where
    j = i - (surplus + BAND) + k. So pairing keeps the slot k, leaving out one of ours comes from slot k + 1
    of the row before, and leaving out one of theirs from slot k - 1 of the same row.
    """
    rows, width = len(ours), _width(ours, theirs)
    shift = width - 1 - BAND
    gap = max(float(END_AGREEMENT_NS), 3 * float(np.median(_nearest_ns(ours.end_ns, theirs.end_ns))))
    used = np.arange(rows + 1)[:, None] - shift + np.arange(width)[None, :]  # j of every cell
    partner = np.clip(used[1:] - 1, 0, len(theirs) - 1)
    distance = np.abs(ours.end_ns[:, None] - theirs.end_ns[partner]).astype(np.float64)
    possible = (used[1:] >= 1) & (used[1:] <= len(theirs))
    possible &= ~_differ(ours, theirs, np.arange(rows)[:, None], partner)
    cost = np.where(possible, distance, np.inf)
    inside = (used >= 0) & (used <= len(theirs))
    total = np.where(inside[:1], gap * used[:1], np.inf).repeat(rows + 1, axis=0)
    slots = gap * np.arange(width)
    for row in range(1, rows + 1):
        best = np.minimum(total[row - 1] + cost[row - 1], np.append(total[row - 1, 1:], np.inf) + gap)
        along = np.minimum.accumulate(best - slots) + slots
        total[row] = np.where(inside[row], along, np.inf)
    return _trace_back(total, cost, gap, len(theirs))


def _nearest_ns(ours: Int64, theirs: Int64) -> Int64:
    """Distance of each of theirs to the nearest of ours."""
    ordered = np.sort(ours)
    above = np.minimum(np.searchsorted(ordered, theirs), len(ordered) - 1)
    below = np.maximum(above - 1, 0)
    nearest: Int64 = np.minimum(np.abs(ordered[above] - theirs), np.abs(ordered[below] - theirs))
    return nearest


def _trace_back(
    total: NDArray[np.float64], cost: NDArray[np.float64], gap: float, count: int
) -> list[tuple[int, int]]:
    pairs = []
    row, column, slot = len(cost), count, BAND
    while row and column:
        if np.isclose(total[row, slot], total[row - 1, slot] + cost[row - 1, slot], rtol=1e-12):
            row, column = row - 1, column - 1
            pairs.append((row, column))
        elif slot + 1 < cost.shape[1] and np.isclose(
            total[row, slot], total[row - 1, slot + 1] + gap, rtol=1e-12
        ):
            row, slot = row - 1, slot + 1
        else:
            column, slot = column - 1, slot - 1
    return pairs[::-1]
