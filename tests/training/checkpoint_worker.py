"""One rank of a checkpoint test: ``torchrun ... -m tests.training.checkpoint_worker JOB...``.

A JOB is ``layout:load:train:save``. A layout is a kind of sharding, with ``/2`` behind it for two replica
groups. The job builds the model so, loads the checkpoint ``load`` (or ``-``), trains that many steps and
saves the checkpoint ``save`` (or ``-``). After loading, rank 0 writes the logits of one fixed batch to
``<load>.<layout>.<world size>.pt``.
"""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist

from training.checkpoint import Checkpoints, Policy
from training.checkpoint_blocks import Blocks, model_entries
from training.config import Config, DataConfig, ModelConfig, ReplicaConfig, ShardingConfig
from training.data import ClickStream
from training.faults import Fault
from training.state import TrainState, start
from training.stepping import plain_step

MODEL = ModelConfig(tables=3, rows=50, dim=256, hidden=(8,))
"""256 columns are two column shards on two ranks: TorchRec cuts no shard narrower than 128."""


def make_state(layout: str) -> TrainState:
    kind, _, groups = layout.partition("/")
    world = dist.get_world_size()
    config = Config(
        name="test",
        world_size=world,
        model=MODEL,
        data=DataConfig(batch_per_rank=16, pooling=2),
        sharding=ShardingConfig(kind=kind),
        replicas=ReplicaConfig(group_size=world // int(groups) if groups else 0),
    )
    return start(config, Fault())


def tables_of(state: TrainState) -> dict[str, torch.Tensor]:
    """The tables that this rank holds."""
    entries = model_entries(state.model.state_dict())
    return {
        name: part.clone()
        for name, entry in entries.items()
        if isinstance(entry, Blocks)
        for _, part in entry.parts
    }


def run(job: str) -> None:
    layout, load, steps, save = job.split(":")
    state = make_state(layout)
    target = None if save == "-" else Path(save)
    # Jobs of one test share a folder; one that started anew in it would move the others' checkpoints aside.
    Checkpoints(Policy(None, start_from=None if load == "-" else Path(load))).resume(state)
    stream = ClickStream(state.config, dist.get_rank())
    if load != "-":
        _, prediction = state.model(ClickStream(state.config, 0).batch(0))
        if dist.get_rank() == 0:
            torch.save(prediction.logits, f"{load}.{layout.replace('/', '_by_')}.{dist.get_world_size()}.pt")
    for step in range(int(steps)):
        plain_step(state, iter([stream.batch(step)]))
    if int(steps) and state.sync_replicas is not None:
        held: list[dict[str, torch.Tensor]] = [{} for _ in range(dist.get_world_size())]
        dist.all_gather_object(held, tables_of(state))
        torch.save(held, f"{save}.held")
    if target is not None:
        state.step = int(target.name.removeprefix("step-"))
        assert Checkpoints(Policy(target.parent, keep=9)).save(state) is not None


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for argument in sys.argv[1:]:
        run(argument)
    dist.barrier()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # gloo's threads may outlive the interpreter's end otherwise (pytorch/pytorch#190489)
