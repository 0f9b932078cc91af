"""Reading specifications: presets, files, overrides, and errors that say what is allowed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.simulate.specs import TWO_NODES, merged
from traceinsight.base.errors import UsageError
from traceinsight.simulate import PRESETS, decode_spec, load_spec


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_valid(name: str) -> None:
    assert load_spec(name).world_size >= 8


def test_a_ladder_preset_has_the_nodes_of_its_name() -> None:
    spec = load_spec("ladder_narrow_8node")
    assert (spec.name, spec.cluster.nodes, spec.narrowing) == ("ladder_narrow_8node", 8, 2)
    assert spec.comms.qcomms_forward == "fp8"  # kept from an earlier stage
    assert spec.tables["item"].partitions_per_rank == 1.0  # changed by a stage, the table's other fields kept
    assert spec.tables["item"].dim == load_spec("ladder_1node").tables["item"].dim


def test_a_file_extends_a_preset_and_another_file(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text('extends = "frm_1node_h100"\nbatch_per_rank = 64\n')
    (tmp_path / "mine.toml").write_text('extends = "base.toml"\n[cluster]\nnodes = 2\n')
    spec = load_spec(tmp_path / "mine.toml", {"cluster.gpus_per_node": 4, "jitter": 0.0})
    assert (spec.batch_per_rank, spec.world_size, spec.jitter) == (64, 8, 0.0)


def test_a_circle_of_extends_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('extends = "a.toml"\n')
    with pytest.raises(UsageError, match="circle"):
        load_spec(tmp_path / "a.toml")


@pytest.mark.parametrize(
    ("change", "field", "allowed"),
    [
        ({"cluster": {"gpus": 8}}, "cluster.gpus", "gpus_per_node"),
        ({"batches": 8}, "batches", "batch_per_rank"),
        ({"batch_per_rank": 0}, "batch_per_rank", ">= 1"),
        ({"jitter": 0.7}, "jitter", "<= 0.3"),
        ({"jitter": "much"}, "jitter", ">= 0"),
        ({"pipeline_depth": 3}, "pipeline_depth", "0, 1, 2"),
        ({"comms": {"qcomms_forward": "fp4"}}, "comms.qcomms_forward", "fp32, bf16, fp16, fp8, int8"),
        ({"cluster": {"gpu": "T4"}}, "cluster.gpu", "H100"),
        ({"cluster": {"network": "token_ring"}}, "cluster.network", "efa_p5"),
        ({"tables": {"big": {"dim": 0}}}, "tables", ">= 1"),
        ({"tables": {"big": {"pooling": "max"}}}, "tables", "sum, none"),
        ({"two_d": {"group_size": 3}}, "two_d.group_size", "divisor"),
        ({"narrowing": 3}, "narrowing", "divisor"),
        ({"stragglers": [{"rank": 8}]}, "stragglers.rank", "0 to 7"),
        ({"stragglers": [{"rank": 1, "speed": 2}]}, "speed", "compute_ms"),
        ({"capture": {"missing_ranks": [9]}}, "capture.missing_ranks", "0 to 7"),
        ({"capture": {"missing_ranks": list(range(8))}}, "capture.missing_ranks", "one rank or more"),
        ({"placement": {"explicit": {"huge": [0]}}}, "placement.explicit", "small_0"),
        ({"placement": {"explicit": {"small_0": [0, 1]}}}, "placement.explicit.small_0", "0 to 7"),
        ({"tables": None}, "tables", ""),
    ],
)
def test_an_error_names_file_field_and_allowed_values(
    change: dict[str, Any], field: str, allowed: str
) -> None:
    with pytest.raises(UsageError) as caught:
        decode_spec(merged(TWO_NODES, change), "mine.toml")
    message = str(caught.value)
    assert message.startswith("mine.toml: ")
    assert field in message
    assert allowed in message


def test_a_missing_file_names_the_presets(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="frm_1node_h100"):
        load_spec(tmp_path / "nothing.toml")


def test_broken_toml_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "broken.toml").write_text("[cluster\n")
    with pytest.raises(UsageError, match="TOML"):
        load_spec(tmp_path / "broken.toml")


def test_an_empty_file_and_a_misspelt_preset_are_answered_shortly(tmp_path: Path) -> None:
    (tmp_path / "empty.toml").write_text("")
    with pytest.raises(UsageError, match=r"empty\.toml: specification: .*`tables`"):
        load_spec(tmp_path / "empty.toml")
    with pytest.raises(UsageError, match="Did you mean ladder_efa_4node"):
        load_spec("ladder_efa_4nodes")
    with pytest.raises(UsageError, match="or a ladder_") as caught:
        load_spec("nothing_like_any")
    assert len(str(caught.value)) < 200
