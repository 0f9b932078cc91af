"""2D parallelism: groups of ranks that shard the tables, and replicas of them that are kept equal.

On a GPU this is TorchRec's ``DMPCollection``. That class asserts CUDA, so on a CPU the same is put together
here from its parts: ``ShardingEnv2D``, a plan moved to the ranks of the own group, and the averaging of
weights and optimizer states over the replicas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from fbgemm_gpu.split_table_batched_embeddings_ops_training import SplitTableBatchedEmbeddingBagsCodegen
from torch import nn
from torch.distributed._shard.sharding_spec import EnumerableShardingSpec
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.remote_device import _remote_device
from torch.profiler import record_function
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.model_parallel import DefaultDataParallelWrapper, DMPCollection
from torchrec.distributed.types import ShardingEnv, ShardingEnv2D, ShardingPlan

from training.config import Config
from training.sharding import Sharders

Sync = Callable[[], None]


def group_matrix(world_size: int, group_size: int, topology: str) -> list[list[int]]:
    """Return the ranks of every sharding group, one row per group; columns are replicas of one shard.

    alltoall_inside gives groups of neighbouring ranks, [[0, 1], [2, 3]]: with as many ranks as a node has,
    the all-to-all stays inside it. allreduce_inside gives groups of distant ranks, [[0, 2], [1, 3]]:
    replicas are neighbours.
    """
    groups = world_size // group_size
    if topology == "alltoall_inside":
        return [list(range(first, first + group_size)) for first in range(0, world_size, group_size)]
    return [list(range(group, world_size, groups)) for group in range(groups)]


def shard(
    config: Config, model: nn.Module, plan: ShardingPlan, sharders: Sharders, device: torch.device
) -> tuple[DistributedModelParallel, Sync | None]:
    """Return the sharded model, and what averages its replicas (None without replicas)."""
    wrapper = DefaultDataParallelWrapper(bucket_cap_mb=config.dense.ddp_bucket_mb)
    common: dict[str, Any] = {
        "module": model,
        "device": device,
        "plan": plan,
        "sharders": sharders,
        "data_parallel_wrapper": wrapper,
    }
    world = dist.GroupMember.WORLD
    if not config.replicas.group_size:
        return DistributedModelParallel(env=ShardingEnv.from_process_group(world), **common), None
    if config.device == "cuda":
        collection = DMPCollection(
            world_size=config.world_size,
            sharding_group_size=config.group_size,
            global_pg=world,
            use_inter_host_allreduce=config.replicas.topology == "alltoall_inside",
            **common,
        )
        return collection, collection.sync
    env = _environment(config)
    _move_to_group(plan, env.device_mesh.mesh[env.device_mesh.get_local_rank("replicate")].tolist())
    sharded = DistributedModelParallel(env=env, **common)
    return sharded, lambda: average_replicas(sharded, env)


def _environment(config: Config) -> ShardingEnv2D:
    matrix = group_matrix(config.world_size, config.group_size, config.replicas.topology)
    mesh = DeviceMesh("cpu", matrix, mesh_dim_names=("replicate", "shard"))
    return ShardingEnv2D(
        sharding_pg=mesh.get_group("shard"),
        replica_pg=mesh.get_group("replicate"),
        global_pg=dist.GroupMember.WORLD,
        device_mesh=mesh,
        node_group_size=min(config.local_world_size, config.group_size),
        use_inter_host_allreduce=config.replicas.topology == "alltoall_inside",
    )


def _move_to_group(plan: ShardingPlan, ranks: list[int]) -> None:
    """Rename rank i of ``plan`` to ``ranks[i]``, in place."""
    for module in plan.plan.values():
        for sharding in module.values():
            sharding.ranks = [ranks[rank] for rank in sharding.ranks]
            if isinstance(sharding.sharding_spec, EnumerableShardingSpec):
                for piece in sharding.sharding_spec.shards:
                    rank = ranks[piece.placement.rank()]
                    piece.placement = _remote_device(f"rank:{rank}/cpu")


def average_replicas(model: DistributedModelParallel, env: ShardingEnv2D) -> None:
    """Average table weights and the optimizer's sums over the replicas of this rank's shards."""
    tensors = table_tensors(model)
    with record_function("## dmp_collection_sync ##"):
        if not tensors:  # this rank owns no table, and neither do its replicas
            return
        flat = torch.cat([tensor.flatten() for tensor in tensors])  # one exchange, not one per table
        dist.all_reduce(flat, group=env.replica_pg)
        flat /= dist.get_world_size(env.replica_pg)
        for tensor, mean in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
            tensor.detach().copy_(mean.view_as(tensor))


def table_tensors(model: DistributedModelParallel) -> list[torch.Tensor]:
    """Return this rank's weights and optimizer states of all tables, in an order that replicas share."""
    tensors: list[torch.Tensor] = []
    # A sharded module keeps its local tables in a plain list, which ``modules()`` does not enter.
    lookups = [lookup for module in model.modules() for lookup in getattr(module, "_lookups", [])]
    for module in (inner for lookup in lookups for inner in lookup.modules()):
        if isinstance(module, SplitTableBatchedEmbeddingBagsCodegen):
            tensors += module.split_embedding_weights()
            tensors += [state for table in module.split_optimizer_states() for state in table]
    return tensors
