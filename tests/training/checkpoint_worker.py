"""One rank of a checkpoint test: ``torchrun ... -m tests.training.checkpoint_worker JOB...``.

A JOB is ``sharding:load:train:save``: build the model with that sharding, load the checkpoint (or ``-``),
train that many steps, save as that checkpoint (or ``-``). After loading, rank 0 writes the logits of one
fixed batch to ``<load>.<world size>.<sharding>.pt``.
"""

import sys
from pathlib import Path

import torch
import torch.distributed as dist

from training.checkpoint import Checkpointer
from training.config import Config, DataConfig, ModelConfig, ShardingConfig
from training.data import ClickStream
from training.faults import Fault
from training.state import start as build

MODEL = ModelConfig(tables=3, rows=50, dim=256, hidden=(8,))
"""256 columns are two column shards on two ranks: TorchRec cuts no shard narrower than 128."""


def run(job: str) -> None:
    sharding, load, steps, save = job.split(":")
    config = Config(
        name="test",
        world_size=dist.get_world_size(),
        model=MODEL,
        sharding=ShardingConfig(kind=sharding),
        data=DataConfig(batch_per_rank=16, pooling=2),
    )
    state = build(config, Fault())
    model, optimizer = state.model, state.optimizer
    start = None if load == "-" else Path(load)
    target = None if save == "-" else Path(save)
    with Checkpointer(model, optimizer, folder=target and target.parent, start_from=start, keep=9) as keeper:
        keeper.resume()
        if start is not None:
            logits = model(ClickStream(config, rank=0).batch(0))[1].logits
            if dist.get_rank() == 0:
                torch.save(logits, f"{load}.{config.world_size}.{sharding}.pt")
        stream = ClickStream(config, dist.get_rank())
        for step in range(int(steps)):
            optimizer.zero_grad()
            model(stream.batch(step))[0].backward()
            optimizer.step()
        if target is not None:
            assert keeper.save(int(target.name.removeprefix("step-"))) is not None


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    for argument in sys.argv[1:]:
        run(argument)
    dist.barrier()
    sys.stdout.flush()
    sys.stderr.flush()
    import os

    os._exit(0)  # as training.__main__ does, for the same reason
