"""The embedding tables and the pieces of them that a run manifest describes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated

import msgspec
from msgspec import Meta

from traceinsight.base.manifest.decode import (
    MAX_TABLE_NAME,
    Amount,
    Place,
    Rank,
    Size,
    Word,
    converted,
    entries,
)

_ON_ALL_RANKS = ("row_wise", "table_row_wise", "grid_shard", "data_parallel")


class ManifestTable(msgspec.Struct, frozen=True):
    """One table; ``mean_ids`` are ids per example, None where not said."""

    rows: Size
    dim: Size
    name: Annotated[str, Meta(max_length=MAX_TABLE_NAME)] = ""
    mean_ids: Amount | None = None
    features: list[Word] = []


@dataclass(frozen=True, slots=True)
class PlannedShard:
    """One piece of a table on the rank that owns it; ``rows`` and ``columns`` are half-open ranges.

    ``movable``: another rank could own it instead. Row-wise and replicated tables are on all ranks anyway.
    """

    table: str
    rank: int
    rows: tuple[int, int]
    columns: tuple[int, int]
    movable: bool

    @property
    def row_count(self) -> int:
        """Rows of the piece."""
        return self.rows[1] - self.rows[0]

    @property
    def dim(self) -> int:
        """Values of one of its rows."""
        return self.columns[1] - self.columns[0]


class _Shard(msgspec.Struct):
    rank: Rank
    rows: tuple[Place, Place]
    columns: tuple[Place, Place]

    def __post_init__(self) -> None:
        if self.rows[1] < self.rows[0] or self.columns[1] < self.columns[0]:
            raise ValueError("a range that ends before it begins")


class _Planned(msgspec.Struct):
    shards: list[_Shard]
    sharding_type: str | None = None


def described_tables(manifest: Mapping[str, object]) -> list[ManifestTable] | None:
    """All tables; None where one of them is not as documented: a sum over the others would mislead."""
    return converted(manifest.get("tables") or [], list[ManifestTable])


def planned_shards(manifest: Mapping[str, object]) -> tuple[list[PlannedShard], int]:
    """(the pieces of the sharding plan, how many of its tables were left out as malformed)."""
    planned, malformed = entries(manifest.get("sharding_plan"), _Planned)
    shards = [
        PlannedShard(table, one.rank, one.rows, one.columns, plan.sharding_type not in _ON_ALL_RANKS)
        for table, plan in planned.items()
        for one in plan.shards
    ]
    return shards, malformed
