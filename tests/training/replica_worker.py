"""One rank of a 2D test: ``torchrun ... -m tests.training.replica_worker TOPOLOGY INTERVAL``.

Trains four steps and after each writes whether this rank's shard equals its replicas', as JSON by rank 0.
"""

import dataclasses
import json
import os
import sys

import torch
import torch.distributed as dist

from training.config import ReplicaConfig
from training.faults import Fault
from training.loading import batches
from training.recipes import FRM_CPU_2RANK
from training.replicas import group_matrix, table_tensors
from training.state import start
from training.stepping import make_advance

STEPS = 4


def main(topology: str, interval: int) -> None:
    replicas = ReplicaConfig(group_size=2, topology=topology, sync_interval=interval)
    config = dataclasses.replace(FRM_CPU_2RANK, world_size=4, replicas=replicas)
    state = start(config, Fault())
    stream, advance = batches(config, dist.get_rank(), 0, Fault()), make_advance(state)
    matrix = group_matrix(4, 2, topology)
    equal = []
    for _ in range(STEPS):
        advance(stream)
        state.step += 1
        mine = torch.cat([tensor.flatten() for tensor in table_tensors(state.model)])
        shards = [torch.empty_like(mine) for _ in range(4)]
        dist.all_gather(shards, mine)
        columns = list(zip(*matrix, strict=True))
        equal.append(all(torch.equal(shards[left], shards[right]) for left, right in columns))
    plans: list[object] = [None] * 4
    dist.all_gather_object(plans, state.plan_ranks())
    if dist.get_rank() == 0:
        sys.stdout.write("RESULT " + json.dumps({"equal": equal, "plans": plans}) + "\n")


if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    main(sys.argv[1], int(sys.argv[2]))
    dist.barrier()
    sys.stdout.flush()
    os._exit(0)  # as training.__main__ does, for the same reason
