"""Who sends how many bytes to whom in the all-to-alls, where split sizes were recorded."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from traceinsight.diagnosis import AllToAllMatrix
from traceinsight.trace.trace_set import MatchedCollective, TraceSet

MOST_RANKS = 256
"""A matrix grows with the square of the ranks; of larger groups nobody reads single cells."""

_Bytes = NDArray[np.float64]  # NaN: not recorded


def all_to_all_matrix(trace_set: TraceSet) -> list[AllToAllMatrix]:
    """One matrix per kind (label and phase), by name; kinds without any split size are left out."""
    kinds: dict[tuple[str, str], list[MatchedCollective]] = defaultdict(list)
    for one in trace_set.collectives:
        if one.operation == "all_to_all" and one.step in trace_set.steps:
            kinds[one.label or "", one.phase].append(one)
    found = (_matrix(label or None, phase, some, trace_set) for (label, phase), some in sorted(kinds.items()))
    return [one for one in found if one is not None]


def _matrix(
    label: str | None, phase: str, exchanges: Sequence[MatchedCollective], trace_set: TraceSet
) -> AllToAllMatrix | None:
    """The sum over exchanges / steady steps. Ranks that never meet in this kind send each other nothing."""
    groups = [_members(one, trace_set) for one in exchanges]
    ranks = sorted({rank for group in groups for rank in group})
    if len(ranks) > MOST_RANKS:
        return None
    place = {rank: at for at, rank in enumerate(ranks)}
    total = np.zeros((len(ranks), len(ranks)))
    for one, group in zip(exchanges, groups, strict=True):
        where = [place[rank] for rank in group]
        total[np.ix_(where, where)] += _sent_bytes(one, group)
    if np.isnan(total).all():
        return None
    per_step = (total / len(trace_set.steps)).tolist()
    return AllToAllMatrix(
        label=label,
        phase=phase,
        ranks=ranks,
        sent_bytes=[[None if math.isnan(cell) else cell for cell in row] for row in per_step],
    )


def _members(one: MatchedCollective, trace_set: TraceSet) -> tuple[int, ...]:
    """The group in its own order, which is the order of the splits; else whoever is known to take part."""
    if one.group is not None:
        return one.group
    known = {*one.ranks, *one.absent_ranks}
    if trace_set.world_size is not None and len(known) == trace_set.world_size:
        return tuple(range(trace_set.world_size))
    return tuple(sorted(known))


def _sent_bytes(one: MatchedCollective, group: tuple[int, ...]) -> _Bytes:
    """What senders say they sent, shape (members, members); where they do not say, what receivers say."""
    size = len(group)
    place = {rank: at for at, rank in enumerate(group)}
    found = np.full((size, size), np.nan)
    parts = [(place[rank], part) for rank, part in zip(one.ranks, one.members, strict=True) if rank in place]
    for at, part in parts:
        found[:, at] = _bytes_of(part.out_split, part.out_bytes, size)
    for at, part in parts:
        sent = _bytes_of(part.in_split, part.in_bytes, size)
        found[at] = np.where(np.isnan(sent), found[at], sent)
    return found


def _bytes_of(split: tuple[int, ...] | None, size_bytes: int | None, members: int) -> _Bytes:
    """Bytes per member; NaN where the split was not recorded or does not fit the buffer.

    PyTorch counts a split in rows of the tensor's first dimension, and the message in elements: a row is
    the message / the sum of the split, and must come out whole.
    """
    unknown = np.full(members, np.nan)
    if split is None or size_bytes is None or len(split) != members:
        return unknown
    rows = sum(split)
    if rows == 0:
        return np.zeros(members) if size_bytes == 0 else unknown
    if size_bytes % rows:
        return unknown
    return np.array(split, dtype=np.float64) * (size_bytes // rows)
