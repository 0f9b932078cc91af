"""Tables -> partitions -> ranks of a sharding group, and what each rank then sends and reads per example."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from traceinsight.simulate.spec import Spec, Table

Float = NDArray[np.float64]

_NOWHERE = -1
_HOT_IDS = 4096
"""Ids whose own frequency decides the balance of hash partitions; the many colder ones spread evenly."""


@dataclass(frozen=True, slots=True)
class Shard:
    """One hash partition of one table.

    Attributes:
        table: Name of the table.
        module: Its module.
        partition: Number of the partition.
        rows: Half-open range of rows it stands for in the manifest (a hash has no ranges; sizes are right).
        dim: Values per row.
        ids: Ids looked up per example.
        pooled: Whether one vector per example is returned, or one per id.
        owner: Rank inside the sharding group.

    """

    table: str
    module: str
    partition: int
    rows: tuple[int, int]
    dim: int
    ids: float
    pooled: bool
    owner: int

    @property
    def vectors(self) -> float:
        """Vectors returned per example."""
        return 1.0 if self.pooled else self.ids

    @property
    def cost(self) -> float:
        """What placement balances: values read plus values returned, per example."""
        return self.dim * (self.ids + self.vectors)


@dataclass(frozen=True, slots=True)
class Module:
    """What the ranks of a group own of one module; arrays have shape (group size,), values per example.

    Attributes:
        ids: Ids that arrive, from each rank of the group.
        values_read: Values of the rows read.
        values_sent: Values returned to each rank of the group.
        shards: Partitions owned.
        dim: Largest row, as the lookup kernel's name says.
        returned_width: Values per example of the module's output after partial vectors were added up.

    """

    name: str
    ids: Float
    values_read: Float
    values_sent: Float
    shards: Float
    dim: int
    returned_width: float


@dataclass(frozen=True, slots=True)
class Sharding:
    """The plan of one sharding group; replicas have the same."""

    shards: tuple[Shard, ...]
    modules: Mapping[str, Module]
    weight_bytes: Float  # owned per rank


def all_tables(spec: Spec) -> Iterator[tuple[str, Table]]:
    """Every table with its name; an entry of the specification stands for ``count`` of them."""
    for name, table in spec.tables.items():
        for index in range(table.count):
            yield (name if table.count == 1 else f"{name}_{index}"), table


def partition_count(table: Table, world_size: int) -> int:
    """Hash partitions of a table in a job of this size."""
    if table.partitions_per_rank is None:
        return table.partitions
    return max(1, round(table.partitions_per_rank * world_size))


def shard_tables(spec: Spec) -> Sharding:
    """Partition and place every table."""
    size = spec.group_size
    drafts: list[tuple[Table, Shard]] = []
    for index, (name, table) in enumerate(all_tables(spec)):
        drafts += [(table, shard) for shard in _partitions(spec, name, table, index)]
    owners = _owners(spec, drafts)
    shards = tuple(replace(shard, owner=owner) for (_, shard), owner in zip(drafts, owners, strict=True))
    names = list(dict.fromkeys(shard.module for shard in shards))
    weights = np.zeros(size)
    for shard in shards:
        weights[shard.owner] += (shard.rows[1] - shard.rows[0]) * shard.dim * 4
    modules = {name: _module(spec, name, [one for one in shards if one.module == name]) for name in names}
    return Sharding(shards, MappingProxyType(modules), weights)


def _partitions(spec: Spec, name: str, table: Table, index: int) -> Iterator[Shard]:
    """The partitions of one table, not placed yet."""
    count = partition_count(table, spec.world_size)
    dim, rows = table.dim // spec.narrowing, table.rows * spec.narrowing
    share = partition_shares(rows, count, table.zipf, (spec.seed, index))
    for partition in range(count):
        bounds = (rows * partition // count, rows * (partition + 1) // count)
        ids = table.mean_ids * float(share[partition])
        yield Shard(name, table.module, partition, bounds, dim, ids, table.pooling == "sum", _NOWHERE)


def partition_shares(rows: int, count: int, zipf: float, seed: tuple[int, ...]) -> Float:
    """Share of the lookups each hash partition gets, shape (count,), sum 1.

    Ids follow Zipf's law p(k) ~ k**-zipf. Each of the hottest goes whole to the partition its hash gives.
    """
    if count == 1 or zipf == 0:
        return np.full(count, 1 / count)
    hot = min(rows, _HOT_IDS)
    frequency = np.arange(1, hot + 1, dtype=np.float64) ** -zipf
    cold = _zipf_tail(hot, rows, zipf)
    placed = np.random.default_rng(seed).integers(0, count, hot)
    total = frequency.sum() + cold
    share = np.bincount(placed, weights=frequency, minlength=count) / total
    return np.asarray(share + cold / total / count, dtype=np.float64)


def _zipf_tail(first: int, rows: int, zipf: float) -> float:
    """Sum of k**-zipf over k in (first, rows], by the midpoint integral (error below 1e-4 from 4096 on)."""
    low, high = first + 0.5, rows + 0.5
    if zipf == 1:
        return float(np.log(high / low))
    return float((high ** (1 - zipf) - low ** (1 - zipf)) / (1 - zipf))


def _owners(spec: Spec, drafts: Sequence[tuple[Table, Shard]]) -> list[int]:
    """Explicit placement and the fixed policies first; greedy then fills up what they left."""
    size = spec.group_size
    owners = [_NOWHERE] * len(drafts)
    load = np.zeros(size)
    turn = 0
    for at, (table, shard) in enumerate(drafts):
        policy = table.placement or spec.placement.policy
        if shard.table in spec.placement.explicit:
            owners[at] = spec.placement.explicit[shard.table][shard.partition]
        elif policy == "modulo":
            owners[at] = shard.partition % size
        elif policy == "round_robin":
            owners[at] = turn % size
            turn += 1
        if owners[at] != _NOWHERE:
            load[owners[at]] += shard.cost
    left = [at for at, owner in enumerate(owners) if owner == _NOWHERE]
    for at in sorted(left, key=lambda one: (-drafts[one][1].cost, one)):
        owners[at] = int(load.argmin())
        load[owners[at]] += drafts[at][1].cost
    return owners


def _module(spec: Spec, name: str, shards: Sequence[Shard]) -> Module:
    owner = np.array([shard.owner for shard in shards])

    def per_rank(values: Sequence[float]) -> Float:
        weights = np.array(values, dtype=np.float64)
        return np.bincount(owner, weights=weights, minlength=spec.group_size).astype(np.float64)

    width = sum(shard.dim * (float(shard.partition == 0) if shard.pooled else shard.ids) for shard in shards)
    return Module(
        name=name,
        ids=per_rank([shard.ids for shard in shards]),
        values_read=per_rank([shard.ids * shard.dim for shard in shards]),
        values_sent=per_rank([shard.vectors * shard.dim for shard in shards]),
        shards=per_rank([1.0] * len(shards)),
        dim=max(shard.dim for shard in shards),
        returned_width=width,
    )
