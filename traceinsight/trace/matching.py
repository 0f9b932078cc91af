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

_MAX_ALIGNMENT_CELLS = 4_000_000
"""Above this, sequences are paired from their ends without search: memory stays bounded."""


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
    matches: list[Match] = []
    for bucket in buckets.values():
        matches += [_match(parts) for parts in _match_bucket(bucket, offsets)]
    return sorted(matches, key=_first_start)


def _key(part: RankCollective) -> _Key:
    group = part.group or part.group_name
    if part.sequence is not None:
        return (group, part.operation, part.sequence)
    return (group, part.operation, part.step, part.label)


def _first_start(match: Match) -> tuple[int, int, int]:
    rank = min(match.parts)
    part = match.parts[rank]
    return (match.step, part.launch_ns, part.start_ns)


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


def _aligned_ends(parts: Sequence[RankCollective], offset_ns: int) -> NDArray[np.int64]:
    return np.array([part.end_ns - offset_ns for part in parts], dtype=np.int64)


def _pair(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Pairs of positions in order; len(ours) >= len(theirs)."""
    in_order = [(position, position) for position in range(len(theirs))]
    if len(ours) == len(theirs) and np.median(np.abs(ours - theirs)) <= END_AGREEMENT_NS:
        return in_order
    if len(ours) * len(theirs) > _MAX_ALIGNMENT_CELLS:
        shift = len(ours) - len(theirs)
        return [(position + shift, position) for position in range(len(theirs))]
    return _align(ours, theirs)


def _align(ours: NDArray[np.int64], theirs: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Order-preserving pairs with the least disagreement of ends (dynamic programming).

    Leaving one out costs as much as a disagreement of ``END_AGREEMENT_NS`` or three times that of the best
    full pairing, whichever is more: real kernels are kept together even where ends spread.
    """
    cost = np.abs(ours[:, None] - theirs[None, :]).astype(np.float64)
    gap = max(float(END_AGREEMENT_NS), 3 * float(np.median(cost.min(axis=0))))
    rows, columns = cost.shape
    total = np.empty((rows + 1, columns + 1))
    total[:, 0] = gap * np.arange(rows + 1)
    total[0, :] = gap * np.arange(columns + 1)
    for row in range(1, rows + 1):
        # min over (pair, skip ours) at once; "skip theirs" runs along the row as a cumulative minimum.
        best = np.minimum(total[row - 1, :-1] + cost[row - 1], total[row - 1, 1:] + gap)
        steps = gap * np.arange(1, columns + 1)
        along = np.minimum.accumulate(np.concatenate(([total[row, 0]], best - steps)))
        total[row, 1:] = np.minimum(best, along[1:] + steps)
    return _trace_back(total, cost)


def _trace_back(total: NDArray[np.float64], cost: NDArray[np.float64]) -> list[tuple[int, int]]:
    pairs = []
    row, column = cost.shape
    while row and column:
        if np.isclose(total[row, column], total[row - 1, column - 1] + cost[row - 1, column - 1], rtol=1e-12):
            row, column = row - 1, column - 1
            pairs.append((row, column))
        elif total[row - 1, column] <= total[row, column - 1]:
            row -= 1
        else:
            column -= 1
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
    differences = []
    for bucket in buckets.values():
        if reference in bucket and rank in bucket and len(bucket[rank]) * len(bucket[reference]) < 1_000_000:
            ours = np.array([part.end_ns for part in bucket[reference]], dtype=np.int64)
            theirs = np.array([part.end_ns for part in bucket[rank]], dtype=np.int64)
            differences.append((theirs[None, :] - ours[:, None]).ravel())
    if not differences:
        return 0
    votes = np.sort(np.concatenate(differences))
    reach = np.searchsorted(votes, votes + END_AGREEMENT_NS // 5, side="right") - np.arange(len(votes))
    best = int(reach.argmax())
    return int(np.median(votes[best : best + int(reach[best])]))
