"""What the shards of the sharding plan cost per step: what a better placement would even out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from traceinsight.base.manifest.table_plan import table_plan
from traceinsight.base.manifest.tables import PlannedShard, described_tables, planned_shards

VALUE_BYTES = 4
"""FP32 tables, as TorchRec's default is."""


@dataclass(frozen=True, slots=True)
class ShardCosts:
    """What each shard costs per step, in the order of ``shards``; ``source`` says in words where from.

    ``read_bytes`` is what its lookups read, ``returned_bytes`` what they give back, ``ids`` their number.
    Planned costs are per example, measured ones per step: only their ratios matter.
    """

    shards: list[PlannedShard]
    read_bytes: list[float]
    returned_bytes: list[float]
    ids: list[float]
    source: str
    measured: bool

    @property
    def total_bytes(self) -> list[float]:
        """What placement evens out: a lookup takes the time its bytes need through memory."""
        return [read + got for read, got in zip(self.read_bytes, self.returned_bytes, strict=True)]


def all_shards(manifest: Mapping[str, object]) -> list[PlannedShard]:
    """The shards of the plan that hold values, or none at all where part of it is malformed.

    Sums over the well-formed part would be too small.
    """
    shards, malformed = planned_shards(manifest)
    return [] if malformed else [shard for shard in shards if shard.row_count and shard.dim]


def shard_costs(manifest: Mapping[str, object]) -> ShardCosts | None:
    """Costs of the plan's shards: measured, else as the tables are described; None without either."""
    shards = all_shards(manifest)
    if not shards:
        return None
    return _measured_costs(manifest, shards) or _described_costs(manifest, shards)


def _measured_costs(manifest: Mapping[str, object], shards: list[PlannedShard]) -> ShardCosts | None:
    """Counts are per table and rank; shards of a table on one rank share them evenly."""
    counted = {(one.table, one.rank): one for one in table_plan(manifest).shards}
    together = Counter((shard.table, shard.rank) for shard in shards)
    read: list[float] = []
    returned: list[float] = []
    ids: list[float] = []
    for shard in shards:
        place = (shard.table, shard.rank)
        one, pieces = counted[place], together[place]
        if one.ids_per_step is None or one.read_bytes_per_step is None or one.returned_bytes_per_step is None:
            return None
        read.append(one.read_bytes_per_step / pieces)
        returned.append(one.returned_bytes_per_step / pieces)
        ids.append(one.ids_per_step / pieces)
    return ShardCosts(shards, read, returned, ids, source="measured bytes", measured=True)


def _described_costs(manifest: Mapping[str, object], shards: list[PlannedShard]) -> ShardCosts | None:
    tables = {table.name: table for table in described_tables(manifest) or []}
    read, returned, ids = [], [], []
    for shard in shards:
        table = tables.get(shard.table)
        if table is None or not table.mean_ids:
            return None
        ids.append(table.mean_ids * shard.row_count / table.rows)
        read.append(ids[-1] * shard.dim * VALUE_BYTES)
        returned.append(float(shard.dim * VALUE_BYTES))
    source = "mean ids and width of the tables, not measured"
    return ShardCosts(shards, read, returned, ids, source, measured=False)
