"""Embedding work spread evenly over the ranks, as far as tables and their pieces can be moved."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from traceinsight.base.units import format_factor
from traceinsight.replay.edits.edit import Explanation, NotApplicableError
from traceinsight.replay.edits.payload import scale_transfers
from traceinsight.replay.facts import Facts, busiest_bytes, sides
from traceinsight.replay.graph import Graph
from traceinsight.replay.placement import Placement, per_rank, place
from traceinsight.replay.shard_costs import ShardCosts, shard_costs

WORTH_MOVING = 0.01
"""A placement that lowers the busiest rank by less than this share of the mean is no change."""

_BLIND_UNCERTAINTY = 0.30


@dataclass(frozen=True, slots=True)
class Balance:
    """``balance``: tables and their pieces get new ranks, the most expensive first to the least loaded.

    Model: with a sharding plan and costs in run.json (measured bytes, else mean ids and width) a placement is
    computed by longest processing time first; a rank's lookup and update kernels change as its cost does, and
    uneven all-to-alls become as uneven as the new placement. Assumes that pieces stay whole, and that kernels
    take time as they take bytes. Without costs every rank does the mean of all, which a placement reaches
    only where pieces are small.
    """

    uncertainty: float = 0.20

    @property
    def text(self) -> str:
        """``balance``."""
        return "balance"

    def apply(self, graph: Graph, facts: Facts) -> Graph:
        """Scale embedding kernels and uneven exchanges."""
        new = _new_placement(facts)
        if new is not None and new.placement.before - new.placement.after < WORTH_MOVING:
            raise NotApplicableError(
                f"by {new.costs.source}, no other placement of {len(new.costs.shards)} shards is more even "
                f"(busiest rank {format_factor(new.placement.before)} the mean)"
            )
        share = _mean if new is None else new.lookups
        edited = _even_exchanges(scale_lookups(graph, facts, share), facts, new)
        if (edited.nodes.duration_ns == graph.nodes.duration_ns).all():
            raise NotApplicableError("no embedding kernel or all-to-all size differs between ranks")
        return edited

    def explain(self, facts: Facts) -> Explanation:
        """How even the placement is before and after."""
        new = _new_placement(facts)
        if new is None:
            return Explanation(
                "every rank is taken to reach the mean; no shards with costs in run.json", _BLIND_UNCERTAINTY
            )
        found, count = new.placement, len(new.costs.shards)
        return Explanation(
            f"by {new.costs.source}, the busiest rank has {format_factor(found.before)} the mean today and "
            f"{format_factor(found.after)} after {found.moved} of {count} shards have moved"
        )


@dataclass(frozen=True, slots=True)
class _New:
    """The new placement, and what it was computed from."""

    costs: ShardCosts
    ranks: tuple[int, ...]
    placement: Placement

    def lookups(self, work: dict[int, float]) -> dict[int, float]:
        """A rank's work changes as its bytes do."""
        today, after = self._sums(self.costs.total_bytes)
        return {rank: taken * after[rank] / today[rank] for rank, taken in work.items()}

    def unevenness(self, costs: Sequence[float]) -> float:
        """Busiest rank over the mean, after the change."""
        after = self._sums(costs)[1].values()
        return max(after) / (sum(after) / len(after)) if sum(after) > 0 else 1.0

    def _sums(self, costs: Sequence[float]) -> tuple[dict[int, float], dict[int, float]]:
        today = [shard.rank for shard in self.costs.shards]
        return per_rank(costs, today, self.ranks), per_rank(costs, self.placement.owners, self.ranks)


def _new_placement(facts: Facts) -> _New | None:
    """None where run.json has no costs, or not of every captured rank (2D lists the first group only)."""
    costs = shard_costs(facts.trace_set.manifest or {})
    ranks = tuple(trace.rank for trace in facts.trace_set.ranks)
    if costs is None or {shard.rank for shard in costs.shards} != set(ranks):
        return None
    owners, movable = zip(*((shard.rank, shard.movable) for shard in costs.shards), strict=True)
    if not all(per_rank(costs.total_bytes, owners, ranks).values()):
        return None
    return _New(costs, ranks, place(costs.total_bytes, owners, ranks, movable))


def scale_lookups(graph: Graph, facts: Facts, share: Callable[[dict[int, float]], dict[int, float]]) -> Graph:
    """Give ranks other amounts of embedding work: ``share`` maps rank -> ns in one step to the same after it.

    Steps in which a rank has none are left alone: it was not recorded, or the rank owns no table.
    """
    duration = graph.nodes.duration_ns.copy()
    embedding = facts.family == "embedding"
    for step in graph.steps:
        mine = embedding & (graph.nodes.step == step)
        ranks = np.unique(graph.nodes.rank[mine])
        totals = {rank: float(duration[mine & (graph.nodes.rank == rank)].sum()) for rank in ranks.tolist()}
        if len(totals) < 2 or not all(totals.values()):
            continue
        for rank, total in share(totals).items():
            duration[mine & (graph.nodes.rank == rank)] *= total / totals[rank]
    return graph.with_durations(duration)


def _mean(work: dict[int, float]) -> dict[int, float]:
    return dict.fromkeys(work, float(np.mean(list(work.values()))))


def _even_exchanges(graph: Graph, facts: Facts, new: _New | None) -> Graph:
    """Of an uneven exchange the busiest rank bounds the transfer: it comes as near the mean as there."""
    ratio = np.ones(len(facts.trace_set.collectives) + 1)
    for index, one in enumerate(facts.trace_set.collectives):
        both = sides(one)
        if one.operation != "all_to_all" or any(len(side) < len(one.ranks) for side in both):
            continue
        reached = 1.0
        if new is not None:
            ids = one.phase == "sparse_data_dist"
            reached = new.unevenness(new.costs.ids if ids else new.costs.returned_bytes)
        largest, mean = busiest_bytes(one), float(np.mean(list(both[0].values())))
        # A side that is even today, such as what every rank gets of all tables, stays so.
        ratio[index] = min(mean * reached / largest, 1.0) if largest else 1.0
    return scale_transfers(graph, facts, ratio, np.zeros(len(ratio)))
