"""What the run manifest says of tables and their shards. An input: nothing is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

VALUE_BYTES = 4
"""FP32 tables, as TorchRec's default is."""


@dataclass(frozen=True, slots=True)
class DescribedTable:
    """One table; ``mean_ids`` are ids per example, None where not said."""

    name: str
    rows: int
    dim: int
    mean_ids: float | None


@dataclass(frozen=True, slots=True)
class DescribedShard:
    """One piece of a table on the rank that owns it; ``rows`` and ``columns`` are counts."""

    table: str
    rank: int
    rows: int
    columns: int


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
        if not isinstance(shards, list):
            return []
        for entry in shards:
            shard = _mapping(entry)
            rank = shard.get("rank")
            rows, columns = _length(shard.get("rows")), _length(shard.get("columns"))
            if not isinstance(rank, int) or isinstance(rank, bool) or rank < 0 or not rows or not columns:
                return []
            found.append(DescribedShard(str(name), rank, rows, columns))
    return found


def _mapping(value: object) -> Mapping[object, object]:
    return value if isinstance(value, dict) else {}


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _positive(value: object) -> float | None:
    usable = isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")
    return float(value) if usable and isinstance(value, int | float) else None


def _length(span: object) -> int | None:
    """Of a half-open range."""
    if not isinstance(span, list | tuple) or len(span) != 2:
        return None
    low, high = span
    whole = isinstance(low, int) and isinstance(high, int) and 0 <= low < high
    return high - low if whole else None
