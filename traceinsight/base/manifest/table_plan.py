"""What a run manifest says about the shards of the embedding tables, checked entry by entry.

Anybody may have written the manifest. An entry that is not as docs/capture.md has it is left out, and
counted, and costs none of the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from traceinsight.base.manifest.decode import Amount, Rank, entries
from traceinsight.base.manifest.tables import PlannedShard, planned_shards


class _Measured(msgspec.Struct):
    ids_per_step: Amount
    read_bytes_per_step: Amount | None = None
    returned_bytes_per_step: Amount | None = None


class _Estimate(msgspec.Struct):
    rank: Rank
    fwd_compute_ms: Amount | None = None
    fwd_comms_ms: Amount | None = None
    bwd_compute_ms: Amount | None = None
    bwd_comms_ms: Amount | None = None
    prefetch_compute_ms: Amount | None = None
    input_dist_comms_ms: Amount | None = None

    def parts_ms(self) -> list[float]:
        parts = msgspec.structs.asdict(self)
        return [value for name, value in parts.items() if name != "rank" and value is not None]


@dataclass(frozen=True, slots=True)
class TableShard:
    """What one rank holds of one table; None where the manifest does not say it.

    Attributes:
        table: Name of the table.
        rank: Who owns it.
        rows: Rows of the table on this rank.
        dim: Values of a row on this rank.
        ids_per_step: Ids looked up per step.
        read_bytes_per_step: Bytes of the rows that were read, per step.
        returned_bytes_per_step: Bytes of the vectors sent back per step, before encoding for the wire.
        planned_ms: The planner's estimate of compute and exchange per step, ms.

    """

    table: str
    rank: int
    rows: int | None
    dim: int | None
    ids_per_step: float | None
    read_bytes_per_step: float | None
    returned_bytes_per_step: float | None
    planned_ms: float | None


@dataclass(frozen=True, slots=True)
class TablePlan:
    """All shards of a run, by rank and table.

    Attributes:
        shards: One per rank and table; empty when the manifest names none.
        unmeasured_ranks: Ranks whose counts are missing in the manifest.
        malformed: Entries left out.

    """

    shards: tuple[TableShard, ...] = ()
    unmeasured_ranks: frozenset[int] = frozenset()
    malformed: int = 0


def table_plan(manifest: Mapping[str, object] | None) -> TablePlan:
    """Join the sharding plan, the planner's estimates and the counted ids of a run manifest."""
    fields = manifest or {}
    counts = fields.get("measured_tables")
    counted = counts.get("tables") if isinstance(counts, Mapping) else counts
    planned, bad_plans = planned_shards(fields)
    measured, bad_counts = entries(counted, dict[Rank, _Measured])
    estimates, bad_estimates = entries(fields.get("planner_estimates"), list[_Estimate])
    missing = counts.get("missing_ranks") if isinstance(counts, Mapping) else None
    unmeasured, bad_ranks = entries({"missing_ranks": missing or []}, list[Rank])
    held: dict[tuple[str, int], list[PlannedShard]] = defaultdict(list)
    for shard in planned:
        held[shard.table, shard.rank].append(shard)
    found = {(table, rank): one for table, ranks in measured.items() for rank, one in ranks.items()}
    expected_ms = _expected_ms(estimates)
    places = sorted({*held, *expected_ms, *found}, key=lambda place: (place[1], place[0]))
    return TablePlan(
        tuple(
            _joined(*place, held.get(place, []), found.get(place), expected_ms.get(place)) for place in places
        ),
        frozenset(unmeasured.get("missing_ranks", [])),
        bad_plans + bad_counts + bad_estimates + bad_ranks,
    )


def _expected_ms(estimates: Mapping[str, Sequence[_Estimate]]) -> dict[tuple[str, int], float]:
    """By table and rank; a place of which nothing was estimated has none."""
    found: dict[tuple[str, int], float] = defaultdict(float)
    for table, guesses in estimates.items():
        for one in guesses:
            if parts_ms := one.parts_ms():
                found[table, one.rank] += sum(parts_ms)
    return found


def _joined(
    table: str, rank: int, shards: Sequence[PlannedShard], counts: _Measured | None, planned_ms: float | None
) -> TableShard:
    rows, dim = _shape(shards)
    return TableShard(
        table=table,
        rank=rank,
        rows=rows,
        dim=dim,
        ids_per_step=None if counts is None else counts.ids_per_step,
        read_bytes_per_step=None if counts is None else counts.read_bytes_per_step,
        returned_bytes_per_step=None if counts is None else counts.returned_bytes_per_step,
        planned_ms=planned_ms,
    )


def _shape(shards: Sequence[PlannedShard]) -> tuple[int | None, int | None]:
    """(rows, values of a row) of what one rank holds of a table; None when its shards are no rectangle."""
    rows, columns = {shard.rows for shard in shards}, {shard.columns for shard in shards}
    if len(columns) == 1:
        return sum(last - first for first, last in rows), _length(columns)
    if len(rows) == 1:
        return _length(rows), sum(last - first for first, last in columns)
    return None, None


def _length(ranges: set[tuple[int, int]]) -> int:
    ((first, last),) = ranges
    return last - first
