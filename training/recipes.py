"""Named runs. A recipe is a whole configuration; ``--set`` changes single fields of it."""

from __future__ import annotations

import dataclasses

from training.config import (
    Config,
    ConfigError,
    DataConfig,
    DenseConfig,
    EmulationConfig,
    FaultConfig,
    LoopConfig,
    ModelConfig,
    QCommsConfig,
    ReplicaConfig,
    ShardingConfig,
)

# A step takes some 200 ms, of which 80 ms are lookups: a rank looks up 4,096 ids (2 tables x 512 examples x
# 4). Without emulated time it took 19 ms, and what two ranks on two cores do to each other was most of it:
# the analysis of a run without a fault found a late rank.
FRM_CPU_2RANK = Config(
    name="frm_cpu_2rank",
    world_size=2,
    model=ModelConfig(tables=4, rows=500, dim=16, hidden=(32, 32)),
    data=DataConfig(batch_per_rank=256, pooling=4),
    emulation=EmulationConfig(forward_ms=40.0, backward_ms=70.0, lookup_us_per_1k_ids=20_000.0),
    loop=LoopConfig(steps=60, wait=20, warmup=3, active=5, measure_tables=True),
)

# 250 ms of emulated dense work. Four ranks on two cores need some 10 ms per step to get every rank and every
# gloo thread scheduled for the exchanges, which looks like transfer; beside 250 ms that is below 5 % and the
# run is healthy, beside 80 ms it was 8 % and an analysis rightly found an exposed exchange. The window of the
# metrics is as long as the run, so that its exchange falls into no profiled step.
HEALTHY_4RANK = Config(
    name="healthy",
    world_size=4,
    model=ModelConfig(tables=8, rows=20_000, dim=32, hidden=(64, 64)),
    data=DataConfig(batch_per_rank=64, pooling=4, workers=1, prefetch=8),
    emulation=EmulationConfig(forward_ms=100.0, backward_ms=150.0),
    loop=LoopConfig(steps=28, wait=15, warmup=5, active=5, window=28),
)

LATE_RANK_4RANK = dataclasses.replace(
    HEALTHY_4RANK, name="late_rank", fault=FaultConfig(kind="late_rank", rank=2, delay_ms=40.0)
)

SLOW_INPUT_4RANK = dataclasses.replace(
    HEALTHY_4RANK, name="slow_input", fault=FaultConfig(kind="slow_input", rank=-1, delay_ms=60.0)
)

# 64 examples x 4 ids x 4 ranks = 1,024 ids per table and step. Spread over four partitions a rank looks up
# 8 x 256; with 95 % of one table's ids in one partition its owner looks up some 700 more, 60 us for each.
HOT_PARTITION_4RANK = dataclasses.replace(
    HEALTHY_4RANK,
    name="hot_partition",
    model=dataclasses.replace(HEALTHY_4RANK.model, tables=4),
    data=dataclasses.replace(HEALTHY_4RANK.data, zipf_exponent=0.0),
    emulation=dataclasses.replace(HEALTHY_4RANK.emulation, lookup_us_per_1k_ids=60_000.0),
    sharding=ShardingConfig(partitions=4, placement="aligned"),
    fault=FaultConfig(kind="hot_partition", table=1, partition=3, share=0.95),
    loop=dataclasses.replace(HEALTHY_4RANK.loop, measure_tables=True),
)

# Vectors of 4 x 256 examples on a link that all ranks share: what a rank sends to the three others is
# 256 x 3 examples x 2 tables x 128 values x 4 bytes = 786 kB per direction in FP32.
EXPOSED_A2A_FP32 = dataclasses.replace(
    HEALTHY_4RANK,
    name="exposed_a2a_fp32",
    model=dataclasses.replace(HEALTHY_4RANK.model, dim=128),
    data=dataclasses.replace(HEALTHY_4RANK.data, batch_per_rank=256),
    fault=FaultConfig(kind="slow_link", link_mbit=400.0),
)

EXPOSED_A2A_FP8 = dataclasses.replace(
    EXPOSED_A2A_FP32, name="exposed_a2a_fp8", qcomms=QCommsConfig(forward="fp8", backward="fp8")
)

FRM_1NODE_8GPU = Config(
    name="frm_1node_8gpu",
    world_size=8,
    ranks_per_node=8,
    device="cuda",
    pipeline="sparse_dist",
    model=ModelConfig(
        tables=64,
        rows=5_000_000,
        dim=128,
        interaction="transformer",
        transformer_layers=4,
        hidden=(1024, 512, 256),
    ),
    data=DataConfig(batch_per_rank=2048, pooling=20, workers=4, pin_memory=True),
    sharding=ShardingConfig(kind="planner"),
    dense=DenseConfig(precision="tf32"),
    loop=LoopConfig(steps=500, wait=100, warmup=5, active=5, window=20),
)

# The baseline of the case: 4 nodes on plain TCP, FP32 on the wire, one copy of the tables.
FRM_4NODE_8GPU = dataclasses.replace(
    FRM_1NODE_8GPU, name="frm_4node_8gpu", world_size=32, network="sockets", pipeline="none"
)

# The steps of the case in the order applied, each on top of the one before.
FRM_4NODE_EFA = dataclasses.replace(FRM_4NODE_8GPU, name="frm_4node_8gpu_efa", network="efa")
FRM_4NODE_FP8 = dataclasses.replace(
    FRM_4NODE_EFA, name="frm_4node_8gpu_fp8", qcomms=QCommsConfig(forward="fp8", backward="fp8")
)
FRM_4NODE_BALANCED = dataclasses.replace(
    FRM_4NODE_FP8, name="frm_4node_8gpu_balanced", sharding=ShardingConfig(partitions=32)
)
FRM_4NODE_NARROW = dataclasses.replace(
    FRM_4NODE_BALANCED,
    name="frm_4node_8gpu_narrow",
    model=dataclasses.replace(FRM_4NODE_BALANCED.model, narrow=2),
)
# A group of 8 ranks holds a copy of its own, so 8 partitions are what its ranks can share evenly.
FRM_4NODE_2D = dataclasses.replace(
    FRM_4NODE_NARROW,
    name="frm_4node_8gpu_2d",
    sharding=ShardingConfig(partitions=8),
    replicas=ReplicaConfig(group_size=8, topology="alltoall_inside", sync_interval=10),
)
FRM_4NODE_OVERLAP = dataclasses.replace(FRM_4NODE_2D, name="frm_4node_8gpu_overlap", pipeline="sparse_dist")

_ALL = (
    FRM_CPU_2RANK,
    HEALTHY_4RANK,
    LATE_RANK_4RANK,
    SLOW_INPUT_4RANK,
    HOT_PARTITION_4RANK,
    EXPOSED_A2A_FP32,
    EXPOSED_A2A_FP8,
    FRM_1NODE_8GPU,
    FRM_4NODE_8GPU,
    FRM_4NODE_EFA,
    FRM_4NODE_FP8,
    FRM_4NODE_BALANCED,
    FRM_4NODE_NARROW,
    FRM_4NODE_2D,
    FRM_4NODE_OVERLAP,
)
RECIPES = {recipe.name: recipe for recipe in _ALL}
ABOUT = {
    "frm_cpu_2rank": "the smallest run that learns: begin here",
    "healthy": "sample trace: nothing wrong",
    "late_rank": "sample trace: rank 2 comes late to the exchange",
    "slow_input": "sample trace: the next batch comes late on all ranks",
    "hot_partition": "sample trace: one hash partition gets most ids of its table",
    "exposed_a2a_fp32": "sample trace: a slow link, FP32 on the wire",
    "exposed_a2a_fp8": "sample trace: the same link, FP8 on the wire",
    "frm_1node_8gpu": "one node, planner-made sharding, pipelined",
    "frm_4node_8gpu": "the start of the case: TCP, FP32, no pipeline",
    "frm_4node_8gpu_efa": "that over EFA",
    "frm_4node_8gpu_fp8": "that with FP8 on the wire",
    "frm_4node_8gpu_balanced": "that with a hash partition of each table per rank",
    "frm_4node_8gpu_narrow": "that with half the values per row and twice the rows",
    "frm_4node_8gpu_2d": "that with a copy of the tables per node",
    "frm_4node_8gpu_overlap": "that with TorchRec's pipeline",
}
"""Recipe -> what it is."""


def list_recipes() -> str:
    """Return every recipe with its ranks, device and what it is."""
    return "\n".join(
        f"{name}\n    {config.world_size} ranks, {config.device}: {ABOUT[name]}"
        for name, config in RECIPES.items()
    )


def recipe(name: str) -> Config:
    """Return the named recipe; raises ConfigError listing the known names."""
    try:
        return RECIPES[name]
    except KeyError:
        raise ConfigError(f"recipe = {name!r} is not known: it must be one of {', '.join(RECIPES)}") from None
