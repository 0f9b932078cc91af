"""Which kernels on different ranks are the same collective.

By process group and sequence number where the arguments give one; else by group, operation and label in
order within the step (:mod:`traceinsight.trace.pairing`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceinsight.base.collective_names import element_bytes
from traceinsight.base.labels import Phase
from traceinsight.trace.pairing import BAND, END_AGREEMENT_NS, Series, pair
from traceinsight.trace.rank_trace import RankCollective
from traceinsight.trace.recording import MISSING, Int64

_Key = tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Match:
    """The parts of one collective by rank; ``group`` are the ranks that should be there, if known."""

    operation: str
    label: str | None
    phase: Phase
    step: int
    group: tuple[int, ...] | None
    parts: Mapping[int, RankCollective]


def match_collectives(
    collectives: Mapping[int, Sequence[RankCollective]], configured: Collection[frozenset[int]] = ()
) -> list[Match]:
    """Match the collectives of all ranks (rank -> its collectives in order of launch).

    ``configured`` are the process groups that the job is known to have, by their members.
    """
    buckets: dict[_Key, dict[int, list[RankCollective]]] = defaultdict(lambda: defaultdict(list))
    for rank, parts in collectives.items():
        for part in parts:
            buckets[_key(part)][rank].append(part)
    offsets = _rough_offsets(collectives, buckets)
    named = {frozenset(part.group) for parts in collectives.values() for part in parts if part.group}
    groups = named.union(configured)
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
    """Align every rank with the one that holds most; what that one lacks is matched among the others."""
    rows, left = _against_longest(bucket, offsets, within_ns=None)
    while len(left) > 1:
        more, left = _against_longest(left, offsets, within_ns=END_AGREEMENT_NS)
        rows += more
    return rows + [{rank: part} for rank, parts in left.items() for part in parts]


def _against_longest(
    bucket: Mapping[int, Sequence[RankCollective]], offsets: Mapping[int, int], within_ns: int | None
) -> tuple[list[dict[int, RankCollective]], dict[int, list[RankCollective]]]:
    """(the collectives of the rank that holds most, what the others hold beside them)."""
    reference = max(sorted(bucket), key=lambda rank: len(bucket[rank]))
    rows: list[dict[int, RankCollective]] = [{reference: part} for part in bucket[reference]]
    ours = _series(bucket[reference], offsets[reference])
    left: dict[int, list[RankCollective]] = {}
    for rank in sorted(bucket):
        if rank == reference:
            continue
        theirs = _series(bucket[rank], offsets[rank])
        pairs = pair(ours, theirs)
        if within_ns is not None:
            pairs = [(row, at) for row, at in pairs if abs(ours.end_ns[row] - theirs.end_ns[at]) <= within_ns]
        for row, position in pairs:
            rows[row][rank] = bucket[rank][position]
        paired = {position for _, position in pairs}
        if len(paired) < len(bucket[rank]):
            left[rank] = [part for at, part in enumerate(bucket[rank]) if at not in paired]
    return rows, left


_EQUAL_ON_ALL = frozenset({"all_reduce", "broadcast", "reduce"})
"""Operations whose members all put in as much."""


def _series(parts: Sequence[RankCollective], offset_ns: int) -> Series:
    def column(values: Iterable[int | None]) -> Int64:
        return np.array([MISSING if value is None else value for value in values], dtype=np.int64)

    return Series(
        end_ns=column(part.end_ns - offset_ns for part in parts),
        size_bytes=column(part.in_bytes if part.operation in _EQUAL_ON_ALL else None for part in parts),
        element_bytes=column(element_bytes(part.dtype) for part in parts),
    )


def _belongs_together(row: Mapping[int, RankCollective], *, several_groups: bool) -> bool:
    """Whether parts that came together by order can be one collective; otherwise each stands alone.

    Not where more ranks came together than the group is said to have: several groups then carry one name.
    And not where nothing names the group although the job has several (gloo's annotations and kernels
    launched before the capture carry no arguments): whose part it is in which group is unknown.
    """
    sizes = {part.group_size for part in row.values() if part.group_size}
    if sizes and len(row) > min(sizes):
        return False
    return not (several_groups and all(is_nameless(part) for part in row.values()))


def is_nameless(part: RankCollective) -> bool:
    """Whether nothing says which process group a part belongs to."""
    return part.group is None and part.group_name is None and part.sequence is None


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
