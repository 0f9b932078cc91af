"""Each optimisation switched on alone, in real runs: what it changes, and that the model still learns."""

import json
import math
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.training.running import REPOSITORY, Run, run_training, settings
from training.launch import rank_environment, torchrun_command

pytestmark = pytest.mark.slow

SHORT = settings("loop.steps=20", "loop.wait=4", "loop.warmup=2", "loop.active=2")
FRAME = {"forward": "## All2All_Pooled_fwd ##", "backward": "## All2All_Pooled_bwd ##"}
BYTES = {"float": 4, "c10::Half": 2, "c10::BFloat16": 2, "unsigned char": 1, "int": 4, "long int": 8}


def run(folder: Path, *assignments: str) -> Run:
    done = run_training(folder, *SHORT, *settings(*assignments))
    assert done.status == 0, done.output
    return done


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run(tmp_path_factory.mktemp("plain"))


def sent_by(done: Run, direction: str) -> float:
    return done.manifest()["wire"][direction]["payload_bytes_per_step"]


def traced_exchange_bytes(done: Run, direction: str) -> float:
    """What rank 0 hands to an exchange of vectors or gradients per step, by its trace: shapes and types."""
    events = done.events(0)
    frames = [event for event in events if event["name"] == FRAME[direction]]
    total = 0
    for event in events:
        inside = any(
            event.get("tid") == frame["tid"]
            and float(frame["ts"]) <= float(event["ts"]) <= float(frame["ts"]) + frame["dur"]
            for frame in frames
        )
        if event["name"] == "c10d::alltoall_base_" and inside:
            sent = event["args"]["Input Dims"][1]  # output, input, splits, ...
            total += math.prod(sent) * BYTES[event["args"]["Input type"][1]]
    return total / len(frames)


# 2 ranks x 256 examples x 2 tables of this rank x 16 values.
VALUES = 2 * 256 * 2 * 16


@pytest.mark.parametrize("direction", FRAME)
def test_fp32_is_the_batch_times_the_width(plain: Run, direction: str) -> None:
    assert sent_by(plain, direction) == VALUES * 4
    assert traced_exchange_bytes(plain, direction) == VALUES * 4


# FP8 has a scale of 4 bytes per row of 16 values: 20 bytes instead of 64. FBGEMM's INT8 has a scale and an
# offset of 4 bytes each for the 32 values of an example: 40 instead of 128.
@pytest.mark.parametrize(
    ("chosen", "value_bytes"), [("fp16", 2), ("bf16", 2), ("fp8", 20 / 16), ("int8", 40 / 32)]
)
def test_fewer_bytes_on_the_wire_in_the_trace_and_in_the_report(
    plain: Run, tmp_path: Path, diagnose: Callable[..., Any], chosen: str, value_bytes: float
) -> None:
    done = run(tmp_path, f"qcomms.forward={chosen}", f"qcomms.backward={chosen}")

    reported = {row.label: row.bytes_per_step for row in diagnose(done.folder).communication}
    for direction, frame in FRAME.items():
        assert sent_by(done, direction) == VALUES * value_bytes
        assert traced_exchange_bytes(done, direction) == VALUES * value_bytes
        assert reported[frame] == VALUES * value_bytes
    # The same clicks and the same start: rounding moves the curve by less than it falls.
    assert done.entropies() == pytest.approx(plain.entropies(), abs=0.01)
    assert done.entropies()[-1] < 1


def test_each_direction_has_a_format_of_its_own(tmp_path: Path) -> None:
    done = run(tmp_path, "qcomms.forward=fp8", "qcomms.backward=bf16")
    for direction, value_bytes in (("forward", 20 / 16), ("backward", 2)):
        assert sent_by(done, direction) == VALUES * value_bytes
        assert traced_exchange_bytes(done, direction) == VALUES * value_bytes


def test_a_pipeline_and_background_loading_change_no_result(plain: Run, tmp_path: Path) -> None:
    done = run(tmp_path, "pipeline=sparse_dist", "data.workers=1")
    assert done.entropies() == pytest.approx(plain.entropies(), rel=1e-5)
    names = {event["name"] for event in done.events(0)}
    assert any(name.startswith("## start_sparse_data_dist") for name in names)
    assert any("MultiProcessingDataLoaderIter" in name for name in names)


def test_narrower_tables_return_half_the_bytes(plain: Run, tmp_path: Path) -> None:
    done = run(tmp_path, "model.narrow=2")
    assert sent_by(done, "forward") * 2 == sent_by(plain, "forward")
    tables = done.manifest()["tables"]
    assert {(table["rows"], table["dim"]) for table in tables} == {(1000, 8)}


def test_everything_of_the_dense_part_at_once(tmp_path: Path) -> None:
    done = run(
        tmp_path,
        "dense.compile=true",
        "dense.compile_backend=aot_eager",
        "dense.precision=bf16",
        "dense.clip_norm=1",
        "dense.ddp_bucket_mb=1",
        "model.interaction=transformer",
        "model.transformer_layers=1",
        "model.sequence_tables=1",
        "sharding.kind=planner",
    )
    assert done.entropies()[-1] < min(1, done.entropies()[0] - 0.02)
    manifest = done.manifest()
    assert "sequence_0" in manifest["sharding_plan"]
    assert manifest["planner_estimates"]["table_0"][0]["fwd_compute_ms"] > 0
    # A sequence is not pooled: every id returns its row.
    for counted in manifest["measured_tables"]["tables"]["sequence_0"].values():
        assert counted["returned_bytes_per_step"] == counted["read_bytes_per_step"] > 0


def test_a_plan_file_places_the_tables(tmp_path: Path) -> None:
    plan = {"table_0": 1, "table_1": 1, "table_2": 1, "table_3": 0}
    (tmp_path / "plan.json").write_text(json.dumps(plan))
    done = run(tmp_path, "sharding.kind=plan_file", f"sharding.plan_file={tmp_path / 'plan.json'}")
    placed = {name: entry["ranks"] for name, entry in done.manifest()["sharding_plan"].items()}
    assert placed == {name: [rank] for name, rank in plan.items()}


def replicas(topology: str, interval: int) -> dict[str, Any]:
    command = torchrun_command(4, [topology, str(interval)])
    command[command.index("training")] = "tests.training.replica_worker"
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env=rank_environment(),
        capture_output=True,
        text=True,
        timeout=150,
        check=True,
    )
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    return json.loads(line.removeprefix("RESULT "))


@pytest.mark.parametrize(
    ("topology", "interval", "equal", "groups"),
    [
        ("alltoall_inside", 1, [True, True, True, True], [[0, 1], [0, 1], [2, 3], [2, 3]]),
        ("allreduce_inside", 2, [False, True, False, True], [[0, 2], [1, 3], [0, 2], [1, 3]]),
    ],
)
def test_replicas_are_equal_after_each_sync_and_not_before(
    topology: str, interval: int, equal: list[bool], groups: list[list[int]]
) -> None:
    result = replicas(topology, interval)
    assert result["equal"] == equal
    owners = [sorted({rank for ranks in plan.values() for rank in ranks}) for plan in result["plans"]]
    assert owners == groups  # each rank's tables lie inside its own group


def test_two_dimensional_training_is_annotated_and_learns(tmp_path: Path) -> None:
    done = run(tmp_path, "world_size=4", "replicas.group_size=2", "pipeline=sparse_dist")
    assert done.entropies()[-1] < done.entropies()[0]
    names = [event["name"] for event in done.events(3)]
    assert names.count("## dmp_collection_sync ##") == 2  # once in each of two profiled steps
