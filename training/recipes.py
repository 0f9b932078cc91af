"""Named runs. A recipe is a whole configuration; ``--set`` changes single fields of it."""

from __future__ import annotations

import dataclasses

from training.config import (
    Config,
    ConfigError,
    DataConfig,
    EmulationConfig,
    FaultConfig,
    LoopConfig,
    ModelConfig,
)

_SMALL = ModelConfig(tables=4, rows=500, dim=16, hidden=(32, 32))

FRM_CPU_2RANK = Config(
    name="frm_cpu_2rank",
    world_size=2,
    model=_SMALL,
    data=DataConfig(batch_per_rank=256, pooling=4),
    loop=LoopConfig(steps=60, wait=20, warmup=3, active=5),
)

# 250 ms of emulated dense work. Four ranks on two cores need some 10 ms per step to get every rank and every
# gloo thread scheduled for the exchanges, which looks like transfer; beside 250 ms that is below 5 % and the
# run is healthy, beside 80 ms it was 8 % and an analysis rightly found an exposed exchange.
HEALTHY_4RANK = Config(
    name="healthy",
    world_size=4,
    model=ModelConfig(tables=8, rows=20_000, dim=32, hidden=(64, 64)),
    data=DataConfig(batch_per_rank=64, pooling=4),
    emulation=EmulationConfig(forward_ms=100.0, backward_ms=150.0),
    loop=LoopConfig(steps=28, wait=15, warmup=5, active=5),
)

LATE_RANK_4RANK = dataclasses.replace(
    HEALTHY_4RANK, name="late_rank", fault=FaultConfig(kind="late_rank", rank=2, delay_ms=40.0)
)

RECIPES = {recipe.name: recipe for recipe in (FRM_CPU_2RANK, HEALTHY_4RANK, LATE_RANK_4RANK)}


def recipe(name: str) -> Config:
    """Return the named recipe; raises ConfigError listing the known names."""
    try:
        return RECIPES[name]
    except KeyError:
        raise ConfigError(f"recipe = {name!r} is not known: it must be one of {', '.join(RECIPES)}") from None
