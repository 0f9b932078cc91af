"""A wrong value names the field and what it may be."""

import dataclasses

import pytest

from training.config import (
    Config,
    ConfigError,
    DataConfig,
    EmulationConfig,
    FaultConfig,
    LoopConfig,
    ModelConfig,
    ShardingConfig,
    settable_fields,
    with_setting,
)
from training.recipes import HEALTHY_4RANK, LATE_RANK_4RANK, RECIPES, recipe


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ModelConfig(dim=6), r"model\.dim = 6 .* a positive multiple of 4"),
        (lambda: ModelConfig(tables=0), r"model\.tables = 0 .* at least 1"),
        (lambda: ModelConfig(hidden=()), r"model\.hidden = \(\) .* one or more widths"),
        (
            lambda: ShardingConfig(kind="diagonal"),
            r"sharding\.kind = 'diagonal' .* table_wise, column_wise, row_wise, planner, plan_file",
        ),
        (lambda: DataConfig(batch_per_rank=0), r"data\.batch_per_rank = 0 .* at least 1"),
        (lambda: DataConfig(zipf_exponent=-1.0), r"data\.zipf_exponent = -1\.0 .* between 0 and 4"),
        (lambda: EmulationConfig(forward_ms=-1.0), r"emulation\.forward_ms = -1\.0 .* 0 or more"),
        (lambda: FaultConfig(kind="tired"), r"fault\.kind = 'tired' .* one of none, late_rank"),
        (lambda: LoopConfig(active=0), r"loop\.active = 0 .* at least 1"),
        (lambda: Config(name="a", world_size=2, device="tpu"), r"device = 'tpu' .* one of cpu, cuda"),
        (
            lambda: Config(name="a", world_size=2, fault=FaultConfig(rank=2)),
            r"fault\.rank = 2 .* a rank of this run, 0 to 1",
        ),
    ],
)
def test_a_wrong_value_names_field_and_allowed_values(make, message) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("model.dimension=32", r"model\.dimension is not a field: .*model\.dim,"),
        ("modle.dim=32", r"modle\.dim is not a field"),
        ("model=32", r"model is not a field"),
        ("model.dim", r"write section\.field=value"),
        ("model.dim=wide", r"model\.dim = 'wide' is not allowed: it must be int"),
        ("model.hidden=64,wide", r"model\.hidden = '64,wide' .* whole numbers joined by commas"),
        ("model.dim=30", r"model\.dim = 30 is not allowed"),  # right type, wrong value
    ],
)
def test_a_wrong_setting_says_what_to_write(assignment: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        with_setting(HEALTHY_4RANK, assignment)


def test_settings_change_one_field_and_leave_the_recipe_alone() -> None:
    changed = with_setting(HEALTHY_4RANK, "model.hidden=8, 4")
    assert changed.model.hidden == (8, 4)
    assert dataclasses.replace(changed, model=HEALTHY_4RANK.model) == HEALTHY_4RANK
    assert with_setting(HEALTHY_4RANK, "world_size=8").world_size == 8
    assert with_setting(HEALTHY_4RANK, "emulation.forward_ms=2.5").emulation.forward_ms == 2.5


def test_every_settable_field_can_be_set_to_its_own_value() -> None:
    for path in settable_fields(LATE_RANK_4RANK):
        section, _, name = path.rpartition(".")
        value = getattr(getattr(LATE_RANK_4RANK, section) if section else LATE_RANK_4RANK, name)
        text = ",".join(map(str, value)) if isinstance(value, tuple) else str(value)
        assert with_setting(LATE_RANK_4RANK, f"{path}={text}") == LATE_RANK_4RANK, path


def test_an_unknown_recipe_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="frm_cpu_2rank, healthy, late_rank"):
        recipe("frm_900_node")


def test_the_late_rank_differs_from_the_healthy_run_in_the_fault_only() -> None:
    same = dataclasses.replace(LATE_RANK_4RANK, name=HEALTHY_4RANK.name, fault=HEALTHY_4RANK.fault)
    assert same == HEALTHY_4RANK


def test_every_recipe_runs_long_enough_for_its_window() -> None:
    for config in RECIPES.values():
        window = config.loop.wait + config.loop.warmup + config.loop.active
        assert window <= config.loop.steps, config.name
