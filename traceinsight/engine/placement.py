"""The shards of a run placed anew, by what each costs."""

from __future__ import annotations

from traceinsight.diagnosis.placement import PlacedShard, Placement, RankCost
from traceinsight.engine.facts import run_facts
from traceinsight.replay.placement import per_rank, place
from traceinsight.replay.shard_costs import ShardCosts, all_shards, shard_costs
from traceinsight.trace.trace_set import TraceSet


def propose_placement(trace_set: TraceSet) -> Placement:
    """The same proposal as the edit ``balance``, also where a rank owns nothing today or was not captured."""
    costs = shard_costs(trace_set.manifest or {})
    if costs is None:
        return _nothing(_why_no_costs(trace_set))
    if not sum(costs.total_bytes):
        return _nothing("no shard was looked up while ids were counted")
    return _placed(costs, _ranks(trace_set, costs))


def _placed(costs: ShardCosts, ranks: list[int]) -> Placement:
    total = costs.total_bytes
    owners = [shard.rank for shard in costs.shards]
    found = place(total, owners, ranks, [shard.movable for shard in costs.shards])
    today, proposed = per_rank(total, owners, ranks), per_rank(total, found.owners, ranks)
    return Placement(
        shards=[
            PlacedShard(
                table=shard.table, rows=shard.row_count, dim=shard.dim, rank=shard.rank,
                proposed_rank=owner, movable=shard.movable, cost_bytes=cost,
            )
            for shard, owner, cost in zip(costs.shards, found.owners, total, strict=True)
        ],
        ranks=[
            RankCost(rank=rank, today_bytes=today[rank], proposed_bytes=proposed[rank]) for rank in ranks
        ],
        before=found.before,
        after=found.after,
        moved=found.moved,
        measured=costs.measured,
        source=costs.source,
    )  # fmt: skip


def _ranks(trace_set: TraceSet, costs: ShardCosts) -> list[int]:
    """Owners, and ranks that own nothing; with sharding groups (2D) the plan lists the first group only."""
    owners = {shard.rank for shard in costs.shards}
    if run_facts(trace_set, ()).sharding_group_size is not None:
        return sorted(owners)
    return sorted(owners | {trace.rank for trace in trace_set.ranks} | set(trace_set.missing_ranks))


def _why_no_costs(trace_set: TraceSet) -> str:
    if trace_set.manifest is None:
        return "no run.json lies beside the traces"
    if not all_shards(trace_set.manifest):
        return "run.json holds no sharding plan, or one that is not as docs/capture.md has it"
    return "run.json holds neither counted bytes of every shard nor the mean ids of every table"


def _nothing(reason: str) -> Placement:
    return Placement(
        shards=[], ranks=[], before=None, after=None, moved=0, measured=False, source=None, reason=reason
    )
