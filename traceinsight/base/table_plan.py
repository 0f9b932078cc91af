"""What a run manifest says about the shards of the embedding tables, checked entry by entry.

Anybody may have written the manifest. An entry that is not as docs/capture.md has it is left out, and
counted, and costs none of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

MAX_TABLE_NAME = 512
"""Characters. A longer name is no name of a table."""

_Amount = Annotated[float, Meta(ge=0, le=1e15)]
_Rank = Annotated[int, Meta(ge=0, lt=1 << 24)]
_Place = Annotated[int, Meta(ge=0, le=1 << 48)]
_Kind = TypeVar("_Kind")


class _Measured(msgspec.Struct):
    ids_per_step: _Amount
    read_bytes_per_step: _Amount | None = None
    returned_bytes_per_step: _Amount | None = None


class _Shard(msgspec.Struct):
    rank: _Rank
    rows: tuple[_Place, _Place]
    columns: tuple[_Place, _Place]

    def __post_init__(self) -> None:
        if self.rows[1] < self.rows[0] or self.columns[1] < self.columns[0]:
            raise ValueError("a range that ends before it begins")


class _Planned(msgspec.Struct):
    shards: list[_Shard]


class _Estimate(msgspec.Struct):
    rank: _Rank
    fwd_compute_ms: _Amount | None = None
    fwd_comms_ms: _Amount | None = None
    bwd_compute_ms: _Amount | None = None
    bwd_comms_ms: _Amount | None = None
    prefetch_compute_ms: _Amount | None = None
    input_dist_comms_ms: _Amount | None = None

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
    planned, bad_plans = _entries(fields.get("sharding_plan"), _Planned)
    measured, bad_counts = _entries(counted, dict[_Rank, _Measured])
    estimates, bad_estimates = _entries(fields.get("planner_estimates"), list[_Estimate])
    missing = counts.get("missing_ranks") if isinstance(counts, Mapping) else None
    unmeasured, bad_ranks = _entries({"missing_ranks": missing or []}, list[_Rank])
    held: dict[tuple[str, int], list[_Shard]] = {}
    for table, plan in planned.items():
        for shard in plan.shards:
            held.setdefault((table, shard.rank), []).append(shard)
    expected_ms: dict[tuple[str, int], float] = {}
    for table, guesses in estimates.items():
        for one in guesses:
            if parts_ms := one.parts_ms():
                expected_ms[table, one.rank] = expected_ms.get((table, one.rank), 0.0) + sum(parts_ms)
    found = {(table, rank): one for table, ranks in measured.items() for rank, one in ranks.items()}
    places = sorted({*held, *expected_ms, *found}, key=lambda place: (place[1], place[0]))
    return TablePlan(
        tuple(
            _joined(*place, held.get(place, []), found.get(place), expected_ms.get(place)) for place in places
        ),
        frozenset(unmeasured.get("missing_ranks", [])),
        bad_plans + bad_counts + bad_estimates + bad_ranks,
    )


def _entries(section: object, kind: type[_Kind]) -> tuple[dict[str, _Kind], int]:
    """(the entries of a section that are of this kind, how many are not). No section: nothing."""
    if section is None:
        return {}, 0
    if not isinstance(section, Mapping):
        return {}, 1
    good: dict[str, _Kind] = {}
    for name, value in section.items():
        entry = _converted(value, kind)
        if entry is not None and isinstance(name, str) and 0 < len(name) <= MAX_TABLE_NAME:
            good[name] = entry
    return good, len(section) - len(good)


def _converted(value: Any, kind: type[_Kind]) -> _Kind | None:
    try:
        return msgspec.convert(value, kind, str_keys=True)
    except (msgspec.ValidationError, RecursionError, OverflowError):
        return None


def _joined(
    table: str, rank: int, shards: list[_Shard], counts: _Measured | None, planned_ms: float | None
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


def _shape(shards: list[_Shard]) -> tuple[int | None, int | None]:
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
