"""Between a model with its optimizer and the files of one checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.metadata import Metadata, MetadataIndex, TensorStorageMetadata
from torch.distributed.checkpoint.utils import find_tensor_shard

from training.checkpoint_blocks import (
    Blocks,
    CheckpointError,
    Conversion,
    Entry,
    conversion,
    model_entries,
    optimizer_entries,
)
from training.checkpoint_ranks import Ranks

_SHOWN = 3
"""Misfits named in an error: enough to see the pattern, e.g. every table having other rows."""


class _SavePlanner(dcp.DefaultSavePlanner):
    """The default planner, which would look for parts in tensors only, and not in Blocks."""

    def lookup_object(self, index: MetadataIndex) -> Any:
        return find_tensor_shard(self.state_dict[index.fqn], index)


class _LoadPlanner(dcp.DefaultLoadPlanner):
    """The same for reading; the state is flat and in memory, so nothing is to be set up."""

    def __init__(self) -> None:
        super().__init__(flatten_state_dict=False, flatten_sharded_tensors=False)

    def set_up_planner(
        self, state_dict: dict[str, Any], metadata: Metadata | None = None, is_coordinator: bool = False
    ) -> None:
        self.state_dict, self.metadata, self.is_coordinator = state_dict, metadata, is_coordinator

    def lookup_tensor(self, index: MetadataIndex) -> torch.Tensor:
        return find_tensor_shard(self.state_dict[index.fqn], index)


def write_state(folder: Path, model: Any, optimizer: Any, ranks: Ranks) -> None:
    """Write the whole state into ``folder`` and make it durable; raises CheckpointError on all ranks."""
    entries = _entries(model.state_dict(), optimizer.state_dict()) | _random_state(ranks)
    writer = dcp.FileSystemWriter(folder, sync_files=True)
    try:
        dcp.save(entries, storage_writer=writer, planner=_SavePlanner(), process_group=ranks.group)
    except CheckpointException as error:
        raise CheckpointError(_reason(error)) from None


def read_state(folder: Path, model: Any, optimizer: Any, ranks: Ranks) -> None:
    """Fill model, optimizer and random numbers from ``folder``; raises CheckpointError on all ranks.

    The checkpoint may come from another number of ranks, another sharding or other column shards.
    """
    model_state, optimizer_state = model.state_dict(), optimizer.state_dict()
    entries, random_state = _entries(model_state, optimizer_state), _random_state(ranks)
    reader = dcp.FileSystemReader(folder)
    stored = ranks.each(lambda: reader.read_metadata().state_dict_metadata)
    known_random = {name: state for name, state in random_state.items() if name in stored}
    wanted, conversions = ranks.each(lambda: _match(entries, stored))
    try:
        state = wanted | known_random
        dcp.load(state, storage_reader=reader, planner=_LoadPlanner(), process_group=ranks.group)
    except CheckpointException as error:
        raise CheckpointError(_reason(error)) from None
    for made in conversions:
        made.apply()
    # The entries share the parameters' memory, except where a kernel keeps rows in a cache of its own.
    model.load_state_dict(model_state)
    optimizer.load_state_dict(optimizer_state)
    _set_random_state(known_random)


def _entries(model_state: dict[str, Any], optimizer_state: dict[str, Any]) -> dict[str, Entry]:
    model = model_entries(model_state)
    return model | optimizer_entries(optimizer_state, model)


def _match(entries: dict[str, Entry], stored: dict[str, Any]) -> tuple[dict[str, Entry], list[Conversion]]:
    """Return what to read and what to make from it; raises CheckpointError naming what does not fit."""
    misfits = [f"{name} is in the checkpoint alone" for name in _parameters(stored) - entries.keys()]
    direct: dict[str, Entry] = {}
    reads: dict[str, Blocks] = {}
    conversions = []
    for name, entry in entries.items():
        facts = stored.get(name)
        if isinstance(facts, TensorStorageMetadata):
            direct[name] = entry
            if facts.size != entry.size():
                misfits.append(f"{name} is {list(facts.size)} there and {list(entry.size())} in this run")
        elif isinstance(entry, Blocks) and (made := conversion(name, entry, stored, reads)):
            conversions.append(made)
        else:
            misfits.append(f"{name} is not in the checkpoint")
    if misfits:
        more = f", and {len(misfits) - _SHOWN} more" if len(misfits) > _SHOWN else ""
        raise CheckpointError(
            f"the checkpoint is of another model: {', '.join(sorted(misfits)[:_SHOWN])}{more}"
        )
    return direct | reads, conversions


def _parameters(stored: dict[str, Any]) -> set[str]:
    return {name for name in stored if name.startswith("model/")}


def _random_state(ranks: Ranks) -> dict[str, Entry]:
    """Return the states of this rank's generators, under names of its own."""
    states: dict[str, Entry] = {f"random/{ranks.rank}/cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states[f"random/{ranks.rank}/cuda"] = torch.cuda.get_rng_state()
    return states


def _set_random_state(states: dict[str, Entry]) -> None:
    for name, state in states.items():
        set_state = torch.cuda.set_rng_state if name.endswith("/cuda") else torch.set_rng_state
        set_state(state)


def _reason(error: CheckpointException) -> str:
    """Return the first rank's failure: the exception's own text holds every rank's whole traceback."""
    rank, (failure, _) = min(error.failures.items())
    return f"rank {rank}: {type(failure).__name__}: {failure}"
