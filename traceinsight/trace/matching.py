"""Which kernels on different ranks are the same collective.

By process group and sequence number where the arguments give one; else by group, operation and label in
order within the step. Where one rank holds fewer than another, order alone would shift every later pair by
one, so the ends decide: members of a synchronising collective end together, whenever they began.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceinsight.base.labels import Phase
from traceinsight.trace.rank_trace import RankCollective

_Key = tuple[object, ...]

END_AGREEMENT_NS = 1_000_000
"""Paired in order, ends may differ by this much before another pairing is tried (1 ms: NCCL's ends agree
within tens of microseconds, gloo's within hundreds)."""

BAND = 50
"""How far two ranks' series may drift apart beyond their difference in length: kernels lost on both."""

MAX_CELLS = 20_000_000
"""Above this, series are paired from their ends without search: memory stays bounded."""


@dataclass(frozen=True, slots=True)
class Match:
    """The parts of one collective by rank; ``group`` are the ranks that should be there, if known."""

    operation: str
    label: str | None
    phase: Phase
    step: int
    group: tuple[int, ...] | None
    parts: Mapping[int, RankCollective]


def match_collectives(collectives: Mapping[int, Sequence[RankCollective]]) -> list[Match]:
    """Match the collectives of all ranks (rank -> its collectives in order of launch)."""
    buckets: dict[_Key, dict[int, list[RankCollective]]] = defaultdict(lambda: defaultdict(list))
    for rank, parts in collectives.items():
        for part in parts:
            buckets[_key(part)][rank].append(part)
    offsets = _rough_offsets(collectives, buckets)
    groups = {part.group for parts in collectives.values() for part in parts if part.group is not None}
    matches: list[Match] = []
    for bucket in buckets.values():
        for row in _match_bucket(bucket, offsets):
            together = _belongs_together(row, several_groups=len(groups) > 1)
            matches += [_match(row)] if together else [_match({rank: part}) for rank, part in row.items()]
    return sorted(matches, key=lambda match: _first_start(match, offsets))


def _key(part: RankCollective) -> _Key:
    group = part.group or part.group_name
    if part.sequence is not None:
        return (group, part.operation, part.sequence)
    return (group, part.operation, part.step, part.label)


def _first_start(match: Match, offsets: Mapping[int, int]) -> tuple[int, int, int]:
    rank = min(match.parts)
    part = match.parts[rank]
    return (match.step, part.launch_ns - offsets[rank], part.start_ns - offsets[rank])


def _match(parts: Mapping[int, RankCollective]) -> Match:
    first = parts[min(parts)]
    ordered = dict(sorted(parts.items()))
    return Match(first.operation, first.label, first.phase, first.step, first.group, ordered)


def _match_bucket(
    bucket: Mapping[int, Sequence[RankCollective]], offsets: Mapping[int, int]
) -> list[dict[int, RankCollective]]:
    """Align every rank with the one that holds most; what pairs with nothing stands alone."""
    reference = max(sorted(bucket), key=lambda rank: len(bucket[rank]))
    rows: list[dict[int, RankCollective]] = [{reference: part} for part in bucket[reference]]
    ends = _aligned_ends(bucket[reference], offsets[reference])
    extra: list[dict[int, RankCollective]] = []
    for rank in sorted(bucket):
        if rank == reference:
            continue
        pairs = _pair(ends, _aligned_ends(bucket[rank], offsets[rank]))
        for row, position in pairs:
            rows[row][rank] = bucket[rank][position]
        paired = {position for _, position in pairs}
        extra += [{rank: part} for at, part in enumerate(bucket[rank]) if at not in paired]
    return rows + extra


def _belongs_together(row: Mapping[int, RankCollective], *, several_groups: bool) -> bool:
    """Whether parts that came together by order can be one collective; otherwise each stands alone.

    Not where more ranks came together than the group is said to have: several groups then carry one name.
    And not where nothing names the group although the job has several (kernels launched before the capture
    carry no arguments): whose part it is in which group is unknown.
    """
    sizes = {part.group_size for part in row.values() if part.group_size}
    if sizes and len(row) > min(sizes):
        return False
    nameless = all(
        part.group is None and part.group_name is None and part.sequence is None for part in row.values()
    )
    return not (nameless and several_groups)


def _aligned_ends(parts: Sequence[RankCollective], offset_ns: int) -> NDArray[np.int64]:
    return np.array([part.end_ns - offset_ns for part in parts], dtype=np.int64)


def _pair(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Pairs of positions in order; len(ours) >= len(theirs)."""
    in_order = [(position, position) for position in range(len(theirs))]
    if len(ours) == len(theirs) and np.median(np.abs(ours - theirs)) <= END_AGREEMENT_NS:
        return in_order
    if len(ours) * _width(ours, theirs) > MAX_CELLS:
        surplus = len(ours) - len(theirs)
        return [(position + surplus, position) for position in range(len(theirs))]
    return _align(ours, theirs)


def _width(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> int:
    return len(ours) - len(theirs) + 2 * BAND + 1


def _align(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Order-preserving pairs with the least disagreement of ends (dynamic programming within a band).

    Leaving one out costs as much as a disagreement of ``END_AGREEMENT_NS`` or three times the usual distance
    to the nearest end, whichever is more: real kernels are kept together even where ends spread.

    ``total[i, k]`` is the least cost of aligning the first i of ours with the first j of theirs, where
    j = i - (surplus + BAND) + k. So pairing keeps the slot k, leaving out one of ours comes from slot k + 1
    of the row before, and leaving out one of theirs from slot k - 1 of the same row.
    """
    rows, width = len(ours), _width(ours, theirs)
    shift = width - 1 - BAND
    gap = max(float(END_AGREEMENT_NS), 3 * float(np.median(_nearest_ns(ours, theirs))))
    used = np.arange(rows + 1)[:, None] - shift + np.arange(width)[None, :]  # j of every cell
    partner = np.clip(used[1:] - 1, 0, len(theirs) - 1)
    distance = np.abs(ours[:, None] - theirs[partner]).astype(np.float64)
    cost = np.where((used[1:] >= 1) & (used[1:] <= len(theirs)), distance, np.inf)
    inside = (used >= 0) & (used <= len(theirs))
    total = np.where(inside[:1], gap * used[:1], np.inf).repeat(rows + 1, axis=0)
    slots = gap * np.arange(width)
    for row in range(1, rows + 1):
        best = np.minimum(total[row - 1] + cost[row - 1], np.append(total[row - 1, 1:], np.inf) + gap)
        along = np.minimum.accumulate(best - slots) + slots
        total[row] = np.where(inside[row], along, np.inf)
    return _trace_back(total, cost, gap, len(theirs))


def _nearest_ns(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Distance of each of theirs to the nearest of ours."""
    ordered = np.sort(ours)
    above = np.minimum(np.searchsorted(ordered, theirs), len(ordered) - 1)
    below = np.maximum(above - 1, 0)
    nearest: NDArray[np.int64] = np.minimum(np.abs(ordered[above] - theirs), np.abs(ordered[below] - theirs))
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


def _rough_offsets(
    collectives: Mapping[int, Sequence[RankCollective]],
    buckets: Mapping[_Key, Mapping[int, Sequence[RankCollective]]],
) -> dict[int, int]:
    """Each rank's clock against the first rank's, by vote: the true offset makes most pairs of ends agree."""
    ranks = sorted(collectives)
    if not ranks:
        return {}
    reference = max(ranks, key=lambda rank: len(collectives[rank]))
    return {rank: 0 if rank == reference else _vote(reference, rank, buckets) for rank in ranks}


def _vote(reference: int, rank: int, buckets: Mapping[_Key, Mapping[int, Sequence[RankCollective]]]) -> int:
    differences = [
        _differences(bucket[reference], bucket[rank])
        for bucket in buckets.values()
        if reference in bucket and rank in bucket
    ]
    if not differences:
        return 0
    votes = np.sort(np.concatenate(differences))
    reach = np.searchsorted(votes, votes + END_AGREEMENT_NS // 5, side="right") - np.arange(len(votes))
    best = int(reach.argmax())
    return int(np.median(votes[best : best + int(reach[best])]))


def _differences(ours: Sequence[RankCollective], theirs: Sequence[RankCollective]) -> NDArray[np.int64]:
    """Their end minus our end for every pair that the band allows."""
    our_ends = np.array([part.end_ns for part in ours], dtype=np.int64)
    their_ends = np.array([part.end_ns for part in theirs], dtype=np.int64)
    reach = abs(len(ours) - len(theirs)) + BAND
    found = []
    for shift in range(-min(reach, len(ours) - 1), min(reach, len(theirs) - 1) + 1):
        low, high = max(0, -shift), min(len(ours), len(theirs) - shift)
        found.append(their_ends[low + shift : high + shift] - our_ends[low:high])
    return np.concatenate(found) if found else np.empty(0, dtype=np.int64)
