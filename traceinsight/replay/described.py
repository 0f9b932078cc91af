"""What the run manifest says of tables and their shards. An input: nothing is trusted."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

VALUE_BYTES = 4
"""FP32 tables, as TorchRec's default is."""

MOST = 2**53
"""Of rows, bytes, ids or ranks; what is larger is none, and its products would fit no float."""

_ON_ALL_RANKS = ("row_wise", "table_row_wise", "grid_shard", "data_parallel")


@dataclass(frozen=True, slots=True)
class DescribedTable:
    """One table; ``mean_ids`` are ids per example, None where not said."""

    name: str
    rows: int
    dim: int
    mean_ids: float | None


@dataclass(frozen=True, slots=True)
class DescribedShard:
    """One piece of a table on the rank that owns it; ``rows`` and ``columns`` are counts.

    ``movable``: another rank could own it instead. Row-wise and replicated tables are on all ranks anyway.
    """

    table: str
    rank: int
    rows: int
    columns: int
    movable: bool


def tables_of(manifest: Mapping[str, object]) -> list[DescribedTable]:
    """The tables, or none at all where one of them is not fully described: sums would be too small."""
    listed = manifest.get("tables")
    found = []
    for entry in listed if isinstance(listed, list) else []:
        table = _mapping(entry)
        name, rows, dim = table.get("name"), _count(table.get("rows")), _count(table.get("dim"))
        if not isinstance(name, str) or not rows or not dim:
            return []
        found.append(DescribedTable(name, rows, dim, _positive(table.get("mean_ids"))))
    return found


def shards_of(manifest: Mapping[str, object]) -> list[DescribedShard]:
    """The shards of the sharding plan, or none at all where one of them is not fully described."""
    found = []
    for name, plan in _mapping(manifest.get("sharding_plan")).items():
        shards = _mapping(plan).get("shards")
        movable = _mapping(plan).get("sharding_type") not in _ON_ALL_RANKS
        if not isinstance(shards, list):
            return []
        for entry in shards:
            shard = _mapping(entry)
            rank = shard.get("rank")
            rows, columns = _length(shard.get("rows")), _length(shard.get("columns"))
            if type(rank) is not int or not 0 <= rank <= MOST or not rows or not columns:
                return []
            found.append(DescribedShard(str(name), rank, rows, columns, movable))
    return found


@dataclass(frozen=True, slots=True)
class ShardCosts:
    """What each shard costs per step, in the order of ``shards``; ``source`` says in words where from.

    ``read_bytes`` is what its lookups read, ``returned_bytes`` what they give back, ``ids`` their number.
    Planned costs are per example, measured ones per step: only their ratios matter.
    """

    shards: list[DescribedShard]
    read_bytes: list[float]
    returned_bytes: list[float]
    ids: list[float]
    source: str
    measured: bool

    @property
    def total_bytes(self) -> list[float]:
        """What placement evens out: a lookup takes the time its bytes need through memory."""
        return [read + got for read, got in zip(self.read_bytes, self.returned_bytes, strict=True)]


def shard_costs(manifest: Mapping[str, object]) -> ShardCosts | None:
    """Costs of the plan's shards: measured, else as the tables are described; None without either."""
    shards = shards_of(manifest)
    if not shards:
        return None
    return _measured_costs(manifest, shards) or _described_costs(manifest, shards)


def _measured_costs(manifest: Mapping[str, object], shards: list[DescribedShard]) -> ShardCosts | None:
    """Counts are per table and rank; shards of a table on one rank share them evenly."""
    tables = _mapping(_mapping(manifest.get("measured_tables")).get("tables"))
    together = Counter((shard.table, shard.rank) for shard in shards)
    fields = ("read_bytes_per_step", "returned_bytes_per_step", "ids_per_step")
    read: list[float] = []
    returned: list[float] = []
    ids: list[float] = []
    for shard in shards:
        counted = _mapping(_mapping(tables.get(shard.table)).get(str(shard.rank)))
        for field, column in zip(fields, (read, returned, ids), strict=True):
            value = _at_least_zero(counted.get(field))
            if value is None:
                return None
            column.append(value / together[shard.table, shard.rank])
    return ShardCosts(shards, read, returned, ids, source="measured bytes", measured=True)


def _described_costs(manifest: Mapping[str, object], shards: list[DescribedShard]) -> ShardCosts | None:
    tables = {table.name: table for table in tables_of(manifest)}
    read, returned, ids = [], [], []
    for shard in shards:
        table = tables.get(shard.table)
        if table is None or table.mean_ids is None:
            return None
        ids.append(table.mean_ids * shard.rows / table.rows)
        read.append(ids[-1] * shard.columns * VALUE_BYTES)
        returned.append(float(shard.columns * VALUE_BYTES))
    source = "mean ids and width of the tables, not measured"
    return ShardCosts(shards, read, returned, ids, source, measured=False)


def _mapping(value: object) -> Mapping[object, object]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    return value if type(value) is int and 0 < value <= MOST else None  # True is no count


def _positive(value: object) -> float | None:
    return _at_least_zero(value) or None


def _at_least_zero(value: object) -> float | None:
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 <= value <= MOST else None


def _length(span: object) -> int | None:
    """Of a half-open range."""
    if not isinstance(span, list | tuple) or len(span) != 2:
        return None
    low, high = span
    whole = type(low) is int and type(high) is int and 0 <= low < high <= MOST
    return high - low if whole else None
