"""Whether a late group is late because of its embedding lookups, and which tables they are in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traceinsight.analyses.stragglers.cause import EXPLAINING_SHARE
from traceinsight.base.statistics import median
from traceinsight.base.units import format_count, format_ns, format_share
from traceinsight.diagnosis import RankLoad, ShardRow
from traceinsight.diagnosis.shards import HEAVY_FACTOR, heavy_shards

_MAX_NAME = 80


@dataclass(frozen=True, slots=True)
class TableFacts:
    """The shards of the run and what they cost each rank; both empty when nothing is known."""

    shards: Sequence[ShardRow] = ()
    loads: Sequence[RankLoad] = ()


NO_TABLES = TableFacts()


@dataclass(frozen=True, slots=True)
class Overload:
    """A sentence for a person, and the tables responsible: none when the ids were not counted."""

    sentence: str = ""
    tables: tuple[str, ...] = ()


def overload_of(group: Sequence[int], lateness_ns: float, facts: TableFacts) -> Overload:
    """What of the lateness of a group is its embedding lookups; empty unless they explain most of it.

    The excess is the group's mean over the median of the other ranks, as for every other cause.
    """
    lookup_ns = _excess(group, {load.rank: load.lookup_ns for load in facts.loads})
    if lookup_ns is None or lookup_ns < max(EXPLAINING_SHARE * lateness_ns, 1):
        return Overload()
    said = f"Embedding lookups take {format_ns(lookup_ns)} more there"
    ids = {load.rank: load.ids_per_step for load in facts.loads}
    mine, others = _split(group, ids)
    if not mine or not others or max(mine) < HEAVY_FACTOR * median(others):
        return Overload(f"{said}.")
    hottest = max(group, key=lambda rank: ids[rank] or 0.0)
    surplus = max(mine) - median(others)
    tables = heavy_shards(facts.shards, hottest, surplus, lambda row: row.ids_per_step)
    return Overload(
        f"{said}: rank {hottest} looks up {format_count(max(mine))} ids per step, the others "
        f"{format_count(median(others))}{_listed(tables, facts.shards)}.",
        tuple(row.table for row in tables),
    )


def _split(group: Sequence[int], amounts: dict[int, float | None]) -> tuple[list[float], list[float]]:
    """Known amounts of the group and of the other ranks."""
    known = {rank: amount for rank, amount in amounts.items() if amount is not None}
    return (
        [amount for rank, amount in known.items() if rank in group],
        [amount for rank, amount in known.items() if rank not in group],
    )


def _excess(group: Sequence[int], amounts: dict[int, int | None]) -> float | None:
    mine, others = _split(group, dict(amounts))
    return sum(mine) / len(mine) - median(others) if mine and others else None


def _listed(tables: Sequence[ShardRow], shards: Sequence[ShardRow]) -> str:
    parts = [
        f"{format_count(row.ids_per_step)} ({format_share(row.share_of_rank)}) in {row.table[:_MAX_NAME]}"
        for row in tables
    ]
    if not parts:
        return ""
    return f"; of its ids {' and '.join(parts)}, against {format_count(_mean_ids(shards))} in a mean shard"


def _mean_ids(shards: Sequence[ShardRow]) -> float:
    counted = [row.ids_per_step for row in shards if row.ids_per_step is not None]
    return sum(counted) / len(counted) if counted else 0.0
