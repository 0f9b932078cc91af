"""Imbalanced shards: some ranks own more of the embedding load than others, and all wait for them.

Detects
    Lookup time per rank (largest against mean), and bytes of vectors per rank in the exchange, from
    ``MIN_IMBALANCE`` on, when together they cost at least ``MIN_SHARE`` of the step.
Why it costs
    The exchange begins when the last owner has looked up its rows, and lasts as long as the owner with
    most vectors needs to send them. A step is as fast as its most loaded rank.
Evidence
    Largest over mean of each measure, the cost of either part, the tables that hold the surplus.
Remedy
    Hash partitions in the number of ranks or a multiple, tables moved to lighter ranks by measured cost.
How the gain is predicted
    A ceiling. Lookups: largest minus mean, no more than the median rank waits. Exchange: its exposed
    transfer times (1 - mean / largest). Both as if the load were spread evenly.
When this is wrong
    Where an uneven lookup hides behind other work, the wait has another reason. Where a few ids take most
    of the load no placement of whole partitions is even. A rank that comes late in most steps is reported
    by `straggler` instead, with its tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

from traceinsight.advice.exchanges import exposed_ns
from traceinsight.advice.measurements import Measurements
from traceinsight.advice.rule import (
    Clean,
    Found,
    NotApplicable,
    Outcome,
    Rule,
    ceiling,
    percent,
    severity_of,
    share_evidence,
)
from traceinsight.advice.tables import listed, spread
from traceinsight.base.statistics import median
from traceinsight.diagnosis import Evidence, Finding, LoadBalance, NanosecondRange, ShardRow
from traceinsight.diagnosis.shards import heavy_shards

MIN_IMBALANCE = 1.1
"""Largest over mean. Hash partitions in the number of the ranks stay below it."""

MIN_SHARE = 0.02
"""Share of the step. As for a straggler: loads are counted or the same in every step, so little is noise."""

MIN_PRESENT_SHARE = 0.5
"""Share of the ranks that must be known: the mean of fewer says little about the others."""


def judge(measurements: Measurements) -> Outcome:
    """Judge how evenly lookups and vectors are spread, and what that costs."""
    if not measurements.partition:
        return NotApplicable(
            "no step with device activity was recorded", "Profile with activities=[CPU, CUDA]."
        )
    present = len(measurements.run.ranks) / (measurements.run.world_size or len(measurements.run.ranks))
    if len(measurements.run.ranks) < 2 or present < MIN_PRESENT_SHARE:
        return NotApplicable(
            "too few ranks were captured to know the mean load", "Capture the same steps on all ranks."
        )
    uneven = {one.measure: one for one in measurements.load_balance if one.imbalance >= MIN_IMBALANCE}
    lookup = uneven.get("lookup_ns")
    exchange = uneven.get("sent_bytes_per_step") or uneven.get("returned_bytes_per_step")
    wait_ns, transfer_ns = _lookup_cost(measurements, lookup), _exchange_cost(measurements, exchange)
    share = measurements.share(wait_ns + transfer_ns)
    if share < MIN_SHARE:
        return Clean(f"uneven shards cost {percent(share)} of the step, below {percent(MIN_SHARE)}")
    main = lookup if wait_ns >= transfer_ns else exchange
    assert main is not None
    late = {rank for one in measurements.stragglers if one.cause == "compute" for rank in one.ranks}
    if main.largest_rank in late:
        return Clean(f"the load of rank {main.largest_rank} is part of the straggler finding about it")
    return Found([_finding(measurements, main, wait_ns, transfer_ns)])


def _lookup_cost(measurements: Measurements, lookup: LoadBalance | None) -> float:
    """What the others wait for the owner with the longest lookups, at most."""
    if lookup is None:
        return 0.0
    waits = measurements.per_rank(lambda row: row.exposed_comm_wait_ns)
    return min(lookup.largest - lookup.mean, median(list(waits.values())))


def _exchange_cost(measurements: Measurements, exchange: LoadBalance | None) -> float:
    """What the exchange of vectors and of their gradients would be shorter, if its sizes were even."""
    if exchange is None:
        return 0.0
    transfer_ns = exposed_ns(
        measurements,
        [
            row
            for row in measurements.communication
            if row.op == "all_to_all" and row.phase in {"forward", "backward"}
        ],
    )
    return transfer_ns * (exchange.imbalance - 1) / exchange.imbalance


def _finding(measurements: Measurements, main: LoadBalance, wait_ns: float, transfer_ns: float) -> Finding:
    share = measurements.share(wait_ns + transfer_ns)
    by_ids = main.measure == "lookup_ns"
    tables = _tables(measurements.shards, main.largest_rank, _ids if by_ids else _returned)
    what = "lookup time" if by_ids else "bytes to send"
    named = f", most in {listed(tables)}" if tables else ""
    freed = round(wait_ns + transfer_ns)
    return Finding(
        rule=RULE.id,
        severity=severity_of(share),
        confidence="medium",
        title=(
            f"The embedding tables are spread unevenly: rank {main.largest_rank} has {main.imbalance:.2f} "
            f"times the mean {what}{named}, which costs {percent(share)} of the step"
        ),
        ranks=[main.largest_rank],
        evidence=[
            share_evidence("uneven_lookups", measurements.share(wait_ns), "of the step window, waiting"),
            share_evidence(
                "uneven_exchange", measurements.share(transfer_ns), "of the step window, transfer"
            ),
            *(
                Evidence(
                    metric=f"imbalance_{one.measure}",
                    value=one.imbalance,
                    unit="ratio",
                    where=f"largest (rank {one.largest_rank}) over mean of ranks",
                )
                for one in measurements.load_balance
                if one.measure != "planned_ns"
            ),
        ],
        gain=ceiling(measurements.step_ns, NanosecondRange(low=0, expected=freed, high=freed)),
        action=spread(tables),
        edits=["balance"],
        quality_risk="None as long as no table is cut or hashed anew: where a row lies changes no number.",
    )


def _tables(shards: Sequence[ShardRow], rank: int, amount: Callable[[ShardRow], float | None]) -> list[str]:
    """The tables that make the rank heavier than the mean rank; none where its load was not counted."""
    per_rank: dict[int, float] = defaultdict(float)
    for row in shards:
        per_rank[row.rank] += amount(row) or 0.0
    surplus = per_rank[rank] - sum(per_rank.values()) / len(per_rank)
    return [row.table for row in heavy_shards(shards, rank, surplus, amount)] if surplus > 0 else []


def _ids(row: ShardRow) -> float | None:
    return row.ids_per_step


def _returned(row: ShardRow) -> float | None:
    return row.returned_bytes_per_step


RULE = Rule("imbalanced-shards", "Some ranks own more of the embedding load than others", judge)
