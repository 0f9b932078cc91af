"""A wrong value names the field and what it may be."""

import dataclasses
import itertools
from pathlib import Path

import pytest

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
    from_toml,
    settable_fields,
    with_setting,
    with_settings,
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
        (
            lambda: FaultConfig(kind="slow_link"),
            r"fault\.link_mbit = 0\.0 .* above 0 with",
        ),
        (
            lambda: ModelConfig(dim=64, narrow=3),
            r"model\.narrow = 3 .* a multiple of 4",
        ),
        (lambda: QCommsConfig(forward="fp4"), r"qcomms\.forward = 'fp4' .* fp32, fp16, bf16, fp8, int8"),
        (
            lambda: ShardingConfig(kind="plan_file"),
            r"sharding\.plan_file = '' .* the path of a plan with sharding\.kind = plan_file",
        ),
        (
            lambda: ShardingConfig(kind="column_wise", partitions=4),
            r"sharding\.kind = 'column_wise' .* table_wise when sharding\.partitions is set",
        ),
        (
            lambda: Config(name="a", world_size=2, sharding=ShardingConfig(kind="row_wise")),
            r"sharding\.kind = 'row_wise' .* one of table_wise, .* on device cpu, .*no row-wise",
        ),
        (
            lambda: Config(name="a", world_size=2, dense=DenseConfig(precision="tf32")),
            r"dense\.precision = 'tf32' .* fp32 or bf16 on device cpu",
        ),
        (
            lambda: Config(name="a", world_size=4, replicas=ReplicaConfig(group_size=3)),
            r"replicas\.group_size = 3 .* a divisor of world_size \(4\) smaller than it",
        ),
        (
            lambda: Config(name="a", world_size=2, fault=FaultConfig(kind="hot_partition")),
            r"sharding\.partitions = 0 .* 2 or more with fault\.kind = hot_partition",
        ),
        (
            lambda: Config(name="a", world_size=4, ranks_per_node=3),
            r"ranks_per_node = 3 .* a divisor of",
        ),
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
        ("model.dimension=32", r"model\.dimension is not a field: did you mean model\.dim\b.*--fields"),
        ("modle.dim=32", r"modle\.dim is not a field: did you mean model\.dim\b"),
        ("model=32", r"model is not a field"),
        ("model.dim", r"write section\.field=value"),
        ("model.dim=wide", r"model\.dim = 'wide' is not allowed: it must be a whole number"),
        ("model.hidden=64,wide", r"model\.hidden = '64,wide' .* whole numbers joined by commas"),
        ("dense.compile=perhaps", r"dense\.compile = 'perhaps' .* true or false"),
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


def test_settings_that_depend_on_each_other_are_judged_together() -> None:
    # Rank 2 suffers in this recipe, so two ranks alone are wrong.
    with pytest.raises(ConfigError, match=r"fault\.rank = 2"):
        with_settings(LATE_RANK_4RANK, ["world_size=2"])
    changed = with_settings(LATE_RANK_4RANK, ["world_size=2", "fault.rank=1"])
    assert (changed.world_size, changed.fault.rank) == (2, 1)


def test_a_toml_file_changes_what_it_names(tmp_path: Path) -> None:
    path = tmp_path / "run.toml"
    path.write_text(
        'name = "mine"\n[model]\nhidden = [8, 4]\n[emulation]\nforward_ms = 2\n[dense]\ncompile = true\n'
    )
    changed = from_toml(HEALTHY_4RANK, path)
    assert (changed.name, changed.model.hidden, changed.dense.compile) == ("mine", (8, 4), True)
    assert changed.emulation.forward_ms == 2.0
    assert changed.emulation.backward_ms == HEALTHY_4RANK.emulation.backward_ms


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[model]\ndim = 30\n", r"model\.dim = 30 is not allowed"),
        ('[model]\ndim = "64"\n', r"model\.dim = '64' is not allowed: it must be a whole number"),
        ("[model]\ndim = true\n", r"model\.dim = True is not allowed: it must be a whole number"),
        ("[model]\nwidth = 64\n", r"model\.width is not a field: .*--fields"),
        ("[model\n", r"run\.toml is no readable TOML file"),
    ],
)
def test_a_wrong_toml_file_says_what_is_wrong(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "run.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=message):
        from_toml(HEALTHY_4RANK, path)


def test_the_example_runs_of_the_case_change_one_thing_at_a_time() -> None:
    steps = ["", "_efa", "_fp8", "_balanced", "_narrow", "_2d", "_overlap"]
    runs = [dataclasses.asdict(RECIPES[f"frm_4node_8gpu{step}"]) for step in steps]
    changed = [
        {name for name in after if before[name] != after[name]} - {"name"}
        for before, after in itertools.pairwise(runs)
    ]
    # A group of eight has eight partitions to share, so 2D brings its own number of them.
    assert changed == [
        {"network"}, {"qcomms"}, {"sharding"}, {"model"}, {"replicas", "sharding"}, {"pipeline"},
    ]  # fmt: skip


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
