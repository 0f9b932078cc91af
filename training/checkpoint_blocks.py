"""A training state as blocks of global tensors, so that a checkpoint knows no ranks.

``torch.distributed.checkpoint`` already reads any part of a global tensor that was written in other parts.
What it cannot know is row-wise optimizer state under column-wise sharding: TorchRec keeps one value per row
*and column shard* and presents them as one tensor of rows x shards, whose size changes with the sharding.
Here such state is stored once per range of columns, under a name that says which.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.distributed._shard.sharded_tensor import ShardedTensor
from torch.distributed.checkpoint.metadata import (
    ChunkStorageMetadata,
    MetadataIndex,
    TensorProperties,
)
from torch.distributed.checkpoint.planner import TensorWriteData, WriteItem, WriteItemType
from torch.distributed.tensor import DTensor
from torchrec.distributed.shards_wrapper import LocalShardsWrapper

Offsets = tuple[int, ...]


class CheckpointError(RuntimeError):
    """A checkpoint that could not be written or read; the text says which one and why."""


@dataclass
class Blocks:
    """What a rank holds of one global tensor of ``shape``, each with the offsets of its first element.

    The dunder methods are the protocol by which ``torch.distributed.checkpoint`` takes tensors of any kind.
    """

    shape: tuple[int, ...]
    parts: list[tuple[Offsets, torch.Tensor]] = field(default_factory=list)

    def size(self) -> torch.Size:
        """Return the global shape, which a load compares with the stored one."""
        return torch.Size(self.shape)

    def __create_write_items__(self, fqn: str, _object: object) -> list[WriteItem]:
        return [
            WriteItem(
                index=MetadataIndex(fqn, torch.Size(offsets)),
                type=WriteItemType.SHARD,
                tensor_data=TensorWriteData(
                    chunk=ChunkStorageMetadata(torch.Size(offsets), part.size()),
                    properties=TensorProperties.create_from_tensor(part),
                    size=self.size(),
                ),
            )
            for offsets, part in self.parts
        ]

    def __create_chunk_list__(self) -> list[ChunkStorageMetadata]:
        return [ChunkStorageMetadata(torch.Size(offsets), part.size()) for offsets, part in self.parts]

    def __get_tensor_shard__(self, index: MetadataIndex) -> torch.Tensor:
        return self.part_at(tuple(index.offset or ()))

    def part_at(self, offsets: Offsets) -> torch.Tensor:
        """Return the part that begins at ``offsets``; raises KeyError."""
        return dict(self.parts)[offsets]

    def reserve(self, offsets: Offsets, like: torch.Tensor) -> None:
        """Add an empty part of the shape of ``like`` unless there is one at ``offsets``."""
        if offsets not in dict(self.parts):
            self.parts.append((offsets, torch.empty_like(like)))


Entry = torch.Tensor | Blocks


def as_entry(value: Any) -> Entry:
    """Return a tensor as it is and a distributed one as this rank's blocks, which share its memory."""
    if isinstance(value, ShardedTensor):
        parts = [(tuple(s.metadata.shard_offsets), s.tensor.detach()) for s in value.local_shards()]
        return Blocks(tuple(value.metadata().size), parts)  # size() warns that DTensor is the future
    if isinstance(value, DTensor):
        local = value.to_local()
        if not isinstance(local, LocalShardsWrapper):
            raise CheckpointError(f"cannot store a DTensor over {type(local).__name__}")
        shards = local.local_shards()
        offsets = local.local_offsets() if shards else []  # without shards it still names one
        pairs = zip(offsets, shards, strict=True)
        return Blocks(tuple(value.size()), [(tuple(first), part.detach()) for first, part in pairs])
    if isinstance(value, torch.Tensor):
        return value.detach()
    raise CheckpointError(f"cannot store a {type(value).__name__}")


def model_entries(state: dict[str, Any]) -> dict[str, Entry]:
    """Return the entries of ``model.state_dict()``."""
    return {f"model/{name}": as_entry(value) for name, value in state.items()}


def optimizer_entries(state: dict[str, Any], model: dict[str, Entry]) -> dict[str, Entry]:
    """Return the entries of ``optimizer.state_dict()``; ``model`` are the entries of the parameters."""
    entries: dict[str, Entry] = {}
    for parameter, states in state["state"].items():
        weight = model[f"model/{parameter}"]
        for name, value in states.items():
            key, entry = f"optimizer/{parameter}/{name}", as_entry(value)
            if isinstance(entry, Blocks) and isinstance(weight, Blocks) and len(entry.shape) == 1:
                entries |= row_state(key, weight, entry)
            else:
                entries[key] = entry
    return entries


def row_state(key: str, weight: Blocks, state: Blocks) -> dict[str, Blocks]:
    """Return one value per row as one entry of [rows] for each range of columns that this rank holds."""
    # TorchRec numbers row state by columns, then rows, and may list a rank's shards in another order.
    weights = sorted(weight.parts, key=lambda part: (part[0][1], part[0][0]))
    states = sorted(state.parts, key=lambda part: part[0])
    entries: dict[str, Blocks] = {}
    for (offsets, rows), (_, values) in zip(weights, states, strict=True):
        name = f"{key}/columns_{offsets[1]}_{offsets[1] + rows.shape[1]}"
        entries.setdefault(name, Blocks(weight.shape[:1])).parts.append((offsets[:1], values))
    return entries


def column_range(key: str) -> tuple[str, int, int] | None:
    """Split the key of a row state into (key without columns, first column, end); None for other keys."""
    stem, _, last = key.rpartition("/")
    if not last.startswith("columns_"):
        return None
    _, first, end = last.split("_")
    return stem, int(first), int(end)


@dataclass(frozen=True)
class Conversion:
    """Row state that is stored for other column ranges than this run has.

    ``sources`` are stored entries that overlap it, each with the number of columns in common.
    """

    target: Blocks
    sources: tuple[tuple[Blocks, int], ...]

    def apply(self) -> None:
        """Fill the target with the mean of the sources, weighted by the columns in common.

        Row-wise Adagrad sums the mean square of a row's gradient over its columns. So joining column shards
        is exact (up to rounding), and splitting gives each shard the mean of the whole, because what each
        column contributed was never stored.
        """
        total = sum(width for _, width in self.sources)
        for offsets, part in self.target.parts:
            part.copy_(sum(source.part_at(offsets) * (width / total) for source, width in self.sources))


def conversion(
    key: str, target: Blocks, stored: Iterable[str], reads: dict[str, Blocks]
) -> Conversion | None:
    """Return how to make ``key`` from stored entries, or None if they do not cover its columns.

    What has to be read for it is added to ``reads``, where several targets share it.
    """
    wanted = column_range(key)
    if wanted is None:
        return None
    stem, first, end = wanted
    sources = []
    for name in stored:
        found = column_range(name)
        common = min(end, found[2]) - max(first, found[1]) if found and found[0] == stem else 0
        if common > 0:
            source = reads.setdefault(name, Blocks(target.shape))
            for offsets, part in target.parts:
                source.reserve(offsets, part)
            sources.append((source, common))
    covered = sum(width for _, width in sources)
    return Conversion(target, tuple(sources)) if covered == end - first else None
