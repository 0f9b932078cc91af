"""How far the ranks' clocks run apart, from the ends of collectives no member can leave early."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceinsight.base.statistics import median_of_others

_REFINEMENTS = 8
"""Rounds of alternating medians; the start from a spanning tree is close, so few are needed."""

RESIDUAL_QUANTILE = 0.9
"""The residual is this quantile of the disagreement: what a single claim must beat to be believed."""


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """A rank's clock minus the reference clock. None: no collective ties the rank to any other.

    Ranks that never meet, not even through others, have references of their own: their times must not be
    compared, and nothing here does, since only members of one collective are.

    ``residual_ns`` is the 90 % quantile of how far the rank's collective ends then still are from those of
    the other members: clock error plus real differences at the end of a collective.
    """

    rank: int
    offset_ns: int | None
    residual_ns: int | None


@dataclass(frozen=True, slots=True)
class Meeting:
    """The ends of one synchronising collective, on each member's own clock."""

    ranks: tuple[int, ...]
    ends_ns: tuple[int, ...]


def estimate_offsets(ranks: Sequence[int], meetings: Sequence[Meeting]) -> dict[int, ClockOffset]:
    """Offsets that make the ends of the same collective agree.

    The reference is the rank whose clock is closest to the median of all that are tied together (ties: the
    lowest rank), so one rank with a wrong clock gets the whole offset. Medians throughout: a few wrong
    pairs move nothing.
    """
    groups = _by_members(meetings)
    offset: dict[int, float] = {}
    for tied in _tied(groups):
        offset |= _from_the_middle(_refine(_spanning_offsets(tied), tied))
    residual = _residuals(offset, groups)
    return {
        rank: ClockOffset(
            rank,
            round(offset[rank]) if rank in residual else None,
            round(residual[rank]) if rank in residual else None,
        )
        for rank in ranks
    }


def _from_the_middle(offset: dict[int, float]) -> dict[int, float]:
    """The same offsets against the rank whose clock is closest to the median of all."""
    middle = float(np.median(list(offset.values())))
    reference = min(offset, key=lambda rank: (abs(offset[rank] - middle), rank))
    return {rank: value - offset[reference] for rank, value in offset.items()}


@dataclass(frozen=True, slots=True)
class _Group:
    """All meetings of the same members.

    ``ends_ns`` has shape (n_meetings, n_members), each row relative to its first member: differences of
    epoch nanoseconds fit a float64 exactly, the epoch itself does not.
    """

    ranks: tuple[int, ...]
    ends_ns: NDArray[np.float64]


def _by_members(meetings: Sequence[Meeting]) -> list[_Group]:
    rows: dict[tuple[int, ...], list[tuple[int, ...]]] = defaultdict(list)
    for meeting in meetings:
        if len(meeting.ranks) > 1:
            rows[meeting.ranks].append(meeting.ends_ns)
    groups = []
    for ranks in sorted(rows, key=lambda ranks: (-len(rows[ranks]), ranks)):
        ends = np.array(rows[ranks], dtype=np.int64)
        groups.append(_Group(ranks, (ends - ends[:, :1]).astype(np.float64)))
    return groups


def _tied(groups: Sequence[_Group]) -> list[list[_Group]]:
    """Groups that chains of common members tie together; clocks compare only within one such set."""
    sets: list[tuple[set[int], list[_Group]]] = []
    for group in groups:
        touching = [one for one in sets if one[0] & set(group.ranks)]
        sets = [one for one in sets if not one[0] & set(group.ranks)]
        ranks = set(group.ranks).union(*(members for members, _ in touching))
        sets.append((ranks, [*(one for _, parts in touching for one in parts), group]))
    return [parts for _, parts in sets]


def _spanning_offsets(groups: Sequence[_Group]) -> dict[int, float]:
    """Median differences, followed from the first group outwards."""
    offset = {groups[0].ranks[0]: 0.0}
    pending = list(groups)
    while True:
        group = next((one for one in pending if any(rank in offset for rank in one.ranks)), None)
        if group is None:
            return offset
        pending.remove(group)
        steps = dict(zip(group.ranks, np.median(group.ends_ns, axis=0).tolist(), strict=True))
        known = next(rank for rank in group.ranks if rank in offset)
        for rank in group.ranks:
            offset.setdefault(rank, offset[known] + steps[rank] - steps[known])


def _aligned(group: _Group, offset: dict[int, float]) -> NDArray[np.float64]:
    shift: NDArray[np.float64] = np.array([offset.get(rank, np.nan) for rank in group.ranks])
    aligned: NDArray[np.float64] = group.ends_ns - shift
    return aligned


def _refine(offset: dict[int, float], groups: Sequence[_Group]) -> dict[int, float]:
    """Move every clock by its median distance from the median member, a few times."""
    tied = [group for group in groups if all(rank in offset for rank in group.ranks)]
    for _ in range(_REFINEMENTS):
        distances: dict[int, list[NDArray[np.float64]]] = defaultdict(list)
        for group in tied:
            aligned = _aligned(group, offset)
            from_median = aligned - np.median(aligned, axis=1, keepdims=True)
            for position, rank in enumerate(group.ranks):
                distances[rank].append(from_median[:, position])
        for rank, values in distances.items():
            offset[rank] += float(np.median(np.concatenate(values)))
    return offset


def _residuals(offset: dict[int, float], groups: Sequence[_Group]) -> dict[int, float]:
    distances: dict[int, list[NDArray[np.float64]]] = defaultdict(list)
    for group in groups:
        if not all(rank in offset for rank in group.ranks):
            continue
        aligned = _aligned(group, offset)
        distance = np.abs(aligned - median_of_others(aligned))
        for position, rank in enumerate(group.ranks):
            distances[rank].append(distance[:, position])
    return {
        rank: float(np.quantile(np.concatenate(values), RESIDUAL_QUANTILE))
        for rank, values in distances.items()
    }
