"""What each rank owns of the embedding tables, and how evenly their load is spread."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Literal, get_args

from traceinsight.diagnosis.run import Struct

Measure = Literal[
    "lookup_ns",
    "sent_bytes_per_step",
    "ids_per_step",
    "read_bytes_per_step",
    "returned_bytes_per_step",
    "planned_ns",
]
LOADS: tuple[Measure, ...] = get_args(Measure)
"""The measures of load, those from the trace first."""

HEAVY_FACTOR = 1.2
"""A shard this much above the mean shard is a heavy one: hashing alone spreads ids less unevenly."""

MAX_TABLES = 3
"""Tables named. Whoever must move more of them needs a new plan, not a list."""


class ShardRow(Struct, frozen=True):
    """What one rank holds of one table: the sharding plan joined with the counted ids of the run manifest.

    ``share_of_rank`` and ``share_of_all`` are of the ids that the rank, and that all ranks, look up.
    """

    rank: int
    table: str
    rows: int | None  # rows of the table on this rank; None when not recorded
    dim: int | None  # values of a row on this rank; None when not recorded
    ids_per_step: float | None  # ids the rank looks up in it, as its owner; None when not counted
    share_of_rank: float | None
    share_of_all: float | None
    read_bytes_per_step: float | None  # bytes of the rows read; None when not counted
    returned_bytes_per_step: float | None  # vectors sent back, before encoding; None when not counted
    planned_ns: int | None  # the planner's estimate per step; None when no planner chose


class RankLoad(Struct, frozen=True):
    """What the embedding tables cost one rank per step.

    ``lookup_ns`` and ``sent_bytes_per_step`` are from the trace, the rest is from the run manifest.
    """

    rank: int
    tables: int | None  # tables it holds a shard of, by the manifest; None when it names no shards
    lookup_ns: int | None  # lookups and their backward on the device; None when none was recorded
    sent_bytes_per_step: float | None  # vectors it puts into forward's all-to-all; None when not recorded
    ids_per_step: float | None  # ids it looks up; None when not counted
    read_bytes_per_step: float | None  # bytes of the rows read; None when not counted
    returned_bytes_per_step: float | None  # vectors sent back, before encoding; None when not counted
    planned_ns: int | None  # the planner's estimate for all its shards; None when no planner chose


class LoadBalance(Struct, frozen=True):
    """How evenly one measure of load is spread over the ranks of which it is known."""

    measure: Measure
    largest_rank: int  # the rank with most
    largest: float  # what it has, in the unit of the measure
    mean: float  # over the ranks
    imbalance: float  # largest / mean; 1 is even


def heavy_shards(
    shards: Sequence[ShardRow], rank: int, surplus: float, amount: Callable[[ShardRow], float | None]
) -> list[ShardRow]:
    """The shards that make ``rank`` heavier than others by ``surplus``, in the unit of ``amount``.

    Those of clearly more than a shard has on average. Where none has, the rank owns too many: the largest,
    down to those that hold the surplus. At most ``MAX_TABLES``; none where nothing was counted.
    """
    counted = [value for row in shards if (value := amount(row)) is not None]
    owned = [(value, row) for row in shards if row.rank == rank and (value := amount(row))]
    owned.sort(key=lambda one: (-one[0], one[1].table))
    heavy = [row for value, row in owned if value >= HEAVY_FACTOR * sum(counted) / len(counted)]
    if heavy:
        return heavy[:MAX_TABLES]
    before = accumulate((value for value, _ in owned), initial=0.0)
    return [row for (_, row), held in zip(owned[:MAX_TABLES], before, strict=False) if held < surplus]
