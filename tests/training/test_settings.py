"""What can be set is listed from the configuration itself, is bounded, and does something."""

import dataclasses
import math
from typing import Any

import pytest
import torch

from training import __main__ as command
from training import samples
from training.config import Config, ConfigError, list_fields, settable_fields, with_settings
from training.config.checks import Between
from training.config.unused import NEEDS, default_of, refuse_unused, value_of
from training.data import ClickStream
from training.recipes import ABOUT, FRM_CPU_2RANK, HOT_PARTITION_4RANK, RECIPES


def numbers_of(config: Config) -> list[str]:
    """Every field that is a number."""
    values = {path: value_of(config, path) for path in settable_fields(config)}
    return [path for path, value in values.items() if type(value) in (int, float)]


def allowed_of(config: Config, path: str) -> Between:
    section, _, name = path.rpartition(".")
    owner: Any = getattr(config, section) if section else config
    allowed: Between = next(part for part in dataclasses.fields(owner) if part.name == name).metadata[
        "allowed"
    ]
    return allowed


@pytest.mark.parametrize("path", numbers_of(FRM_CPU_2RANK))
def test_every_number_is_finite_and_bounded_on_both_sides(path: str) -> None:
    allowed = allowed_of(FRM_CPU_2RANK, path)
    assert math.isfinite(allowed.low)
    assert math.isfinite(allowed.high)
    beyond = [allowed.low - 1, allowed.high * 2]
    if type(value_of(FRM_CPU_2RANK, path)) is float:
        beyond += [math.inf, -math.inf, math.nan]
    for value in beyond:
        text = str(int(value)) if type(value_of(FRM_CPU_2RANK, path)) is int else str(value)
        with pytest.raises(ConfigError, match=rf"{path} = .* is not allowed: it must be "):
            with_settings(FRM_CPU_2RANK, [f"{path}={text}"])


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (["world_size=1", "sharding.partitions=2", "sharding.placement=misaligned"], "leaves a rank without"),
        (["name=../x"], "name = '../x' .* a folder's name"),
        (["name=.hidden"], "a folder's name"),
        (["name="], "a folder's name"),
        (["model.dim=1e6"], "model.dim = '1e6' .* a whole number in digits"),
        (["sharding.kind=row_wise"], "one of table_wise, column_wise, planner, plan_file on device cpu"),
        (["fault.kind=late_rank"], "fault.delay_ms = 0.0 .* above 0 with fault.kind = late_rank"),
        (["fault.kind=slow_input"], "fault.delay_ms = 0.0 .* above 0"),
        (["fault.kind=host_sync"], "fault.delay_ms = 0.0 .* above 0"),
        (["fault.kind=host_sync", "device=cuda"], "fault.count = 0 .* above 0"),
        (["fault.kind=tiny_kernels"], "fault.count = 0 .* above 0"),
        (["dim=32"], r"dim is not a field: did you mean model\.dim\?"),
        (["fault=late_rank"], r"fault is not a field: did you mean fault\."),
    ],
)
def test_a_value_that_cannot_work_is_refused_with_what_may_be(assignments: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        with_settings(FRM_CPU_2RANK, assignments)


def test_the_largest_seed_draws_clicks() -> None:
    config = with_settings(FRM_CPU_2RANK, [f"data.seed={2**31 - 1}"])
    torch.manual_seed(config.data.seed)
    assert len(ClickStream(config, rank=1).batch(10**6).labels) == 256


USELESS = {
    "network": "efa",
    "model.transformer_layers": 3,
    "data.prefetch": 4,
    "sharding.placement": "misaligned",
    "replicas.topology": "allreduce_inside",
    "replicas.sync_interval": 2,
    "dense.compile_backend": "eager",
    "checkpoint.keep": 3,
    "checkpoint.resume": "false",
    "fault.rank": 1,
    "fault.delay_ms": 5,
    "fault.table": 1,
    "fault.partition": 1,
    "fault.share": 0.5,
    "fault.count": 3,
    "fault.link_mbit": 100,
}


def test_every_field_that_needs_another_one_is_tried_here() -> None:
    assert set(USELESS) == set(NEEDS)


@pytest.mark.parametrize("path", USELESS)
def test_a_setting_that_would_do_nothing_is_refused(path: str) -> None:
    with pytest.raises(ConfigError, match=rf"{path} = .* would do nothing: it needs "):
        with_settings(FRM_CPU_2RANK, [f"{path}={USELESS[path]}"])


def test_what_a_recipe_has_left_over_is_not_what_was_asked_for() -> None:
    assert with_settings(HOT_PARTITION_4RANK, ["fault.kind=none"]).fault.share == 0.95
    # Its own default asks for nothing.
    with_settings(FRM_CPU_2RANK, [f"fault.rank={default_of(FRM_CPU_2RANK, 'fault.rank')}"])


@pytest.mark.parametrize("name", RECIPES)
def test_no_recipe_has_a_setting_that_does_nothing(name: str) -> None:
    refuse_unused(RECIPES[name], settable_fields(RECIPES[name]))


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    with pytest.raises(SystemExit) as ended:
        command.main(list(arguments))
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_the_list_of_fields_is_complete_and_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, "--recipe", "late_rank", "--fields").splitlines()
    assert max(map(len, lines)) <= 80
    listed = [line.split(" = ")[0].strip() for line in lines if line.startswith("  ") and " = " in line[:45]]
    assert [path for path in settable_fields(FRM_CPU_2RANK) if path not in listed] == []
    assert "  fault.delay_ms = 40.0" in lines  # that recipe's


def test_every_field_says_what_it_means() -> None:
    undocumented = [
        path
        for block in list_fields(FRM_CPU_2RANK).replace("\n      ", " ").split("\n")
        if " = " in block and len(block.split()) < 7
        for path in [block.split()[0]]
    ]
    assert undocumented == []


def test_one_section_can_be_listed(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--fields", "qcomms")
    assert "qcomms.forward = fp32\n      one of fp32, fp16, bf16, fp8, int8" in text
    assert "model.dim" not in text
    with pytest.raises(SystemExit) as ended:
        command.main(["--fields", "modle"])
    assert ended.value.code == 2
    assert "must be one of model, data" in capsys.readouterr().err


def test_every_recipe_is_listed_with_what_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--recipes")
    assert list(ABOUT) == list(RECIPES)
    assert all(f"{name}\n" in text for name in RECIPES)
    assert max(map(len, text.splitlines())) <= 80


def test_help_says_where_everything_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "--help")
    assert "--fields" in text
    assert "--recipes" in text
    assert max(map(len, text.splitlines())) <= 80


def test_an_unknown_sample_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        samples.main(["nope"])
    assert ended.value.code == 2
    assert "'nope' is no sample: it must be one of healthy" in capsys.readouterr().err


def test_the_help_of_samples_names_the_number_of_attempts(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        samples.main(["--help"])
    assert f"at most {samples.ATTEMPTS}" in " ".join(capsys.readouterr().out.split())
