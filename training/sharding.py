"""Where the tables go: the sharding plan, and the model sharded by it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch.distributed as dist
from torch import nn
from torchrec import EmbeddingBagCollection, EmbeddingCollection
from torchrec.distributed.embedding import EmbeddingCollectionSharder
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, ParameterConstraints, Topology
from torchrec.distributed.sharding_plan import column_wise, construct_module_sharding_plan, table_wise
from torchrec.distributed.types import ModuleSharder, ShardingPlan

from training.codecs import WireCounter, codec_registry
from training.config import Config, ConfigError
from training.tables import Part, pooled_parts, sequence_parts

Sharders = list[ModuleSharder[nn.Module]]


def make_sharders(config: Config, counter: WireCounter) -> Sharders:
    """Return the sharders of both kinds of tables, with the number formats of the wire."""
    registry = codec_registry(config, counter)
    return [
        EmbeddingBagCollectionSharder(qcomm_codecs_registry=registry),
        EmbeddingCollectionSharder(qcomm_codecs_registry=registry),
    ]


def make_plan(config: Config, model: nn.Module, sharders: Sharders) -> tuple[ShardingPlan, Any]:
    """Return (the plan, the planner's sharding options or None where the placement was given).

    The plan is for the ranks 0 to ``group_size - 1`` of one group; with replicas every group gets its own.
    Raises ConfigError for a plan file that cannot be used.
    """
    parts = [*pooled_parts(config), *sequence_parts(config)]
    if config.sharding.kind == "plan_file":
        return _given_plan(config, model, _read_placement(config, parts)), None
    if config.sharding.partitions:
        return _given_plan(config, model, deal_out(config, parts)), None
    return _planned(config, model, sharders, parts)


def _planned(
    config: Config, model: nn.Module, sharders: Sharders, parts: list[Part]
) -> tuple[ShardingPlan, Any]:
    constraints = None
    if config.sharding.kind != "planner":
        kinds = [config.sharding.kind]
        constraints = {part.name: ParameterConstraints(sharding_types=kinds) for part in parts}
    planner = EmbeddingShardingPlanner(
        topology=Topology(
            world_size=config.group_size,
            local_world_size=min(config.local_world_size, config.group_size),
            compute_device=config.device,
        ),
        batch_size=config.data.batch_per_rank,
        constraints=constraints,
    )
    # Every rank computes the same plan from the same tables, but only rank 0's counts: it is sent to the
    # others, so that a difference in a float cannot place a table twice.
    plan = planner.collective_plan(model, sharders, dist.GroupMember.WORLD)
    return plan, getattr(planner, "_best_plan", None)


def deal_out(config: Config, parts: list[Part]) -> dict[str, int | list[int]]:
    """Return part -> rank. A sequence table counts as partition 0 of its number."""
    ranks = config.group_size - (config.sharding.placement == "misaligned")
    return {part.name: (part.table if part.partition is None else part.partition) % ranks for part in parts}


def _read_placement(config: Config, parts: list[Part]) -> dict[str, int | list[int]]:
    path = config.sharding.plan_file
    try:
        placement = json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"sharding.plan_file = {path!r} cannot be read: {error}") from None
    names = [part.name for part in parts]
    if not isinstance(placement, dict) or sorted(placement) != sorted(names):
        raise ConfigError(
            f"sharding.plan_file = {path!r} is not allowed: it must place exactly {', '.join(names)}"
        )
    for name, where in placement.items():
        ranks = where if isinstance(where, list) and where else [where]
        if not all(type(rank) is int and 0 <= rank < config.group_size for rank in ranks):
            raise ConfigError(
                f"sharding.plan_file places {name} on {where!r}: it must be a rank, or a list of the ranks "
                f"of its column shards, 0 to {config.group_size - 1}"
            )
    return placement


def _given_plan(config: Config, model: nn.Module, placement: dict[str, int | list[int]]) -> ShardingPlan:
    plans = {}
    for path, module in model.named_modules():
        if not isinstance(module, EmbeddingBagCollection | EmbeddingCollection):
            continue
        bags = isinstance(module, EmbeddingBagCollection)
        tables = module.embedding_bag_configs() if bags else module.embedding_configs()
        plans[path] = construct_module_sharding_plan(
            module,
            per_param_sharding={
                table.name: column_wise(ranks=where) if isinstance(where, list) else table_wise(rank=where)
                for table in tables
                for where in [placement[table.name]]
            },
            local_size=min(config.local_world_size, config.group_size),
            world_size=config.group_size,
            device_type=config.device,
        )
    return ShardingPlan(plan=plans)
