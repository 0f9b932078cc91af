"""Where the shards of the embedding tables could lie instead of where they lie today."""

from __future__ import annotations

from traceinsight.diagnosis.run import Struct


class PlacedShard(Struct, frozen=True):
    """One shard of the sharding plan: who owns it, and who would.

    ``cost_bytes`` is what its lookups read and give back: per step where it was counted, per example where
    it was worked out of the tables' description (:attr:`Placement.measured` says which).
    """

    table: str
    rows: int  # rows of the table in this shard
    dim: int  # values of a row in this shard
    rank: int  # today's owner
    proposed_rank: int
    movable: bool  # False where all ranks hold a part of the table anyway (row-wise, replicated)
    cost_bytes: float


class RankCost(Struct, frozen=True):
    """What all shards of one rank cost, in the unit of :class:`PlacedShard`."""

    rank: int
    today_bytes: float
    proposed_bytes: float


class Placement(Struct, frozen=True):
    """Today's placement beside the proposed one: the most expensive shard first, to the least loaded rank.

    ``before`` and ``after`` are the busiest rank over the mean of all (1 is even). The proposal is today's
    placement where no other one was found that is more even. Without ``shards``, ``reason`` says why.
    """

    shards: list[PlacedShard]
    ranks: list[RankCost]
    before: float | None
    after: float | None
    moved: int  # shards that change their rank
    measured: bool  # costs were counted while training, not worked out of the tables' description
    source: str | None  # in words, where the costs are from
    reason: str | None = None  # why nothing is proposed
