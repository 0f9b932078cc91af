"""The files of a run: repeatable, whole or absent, never overwriting silently, with real fields."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.simulate.specs import two_nodes
from traceinsight.base.errors import UsageError
from traceinsight.simulate import simulate, write_run


def read(folder: Path, rank: int) -> dict[str, Any]:
    return json.loads(gzip.decompress((folder / f"rank{rank}.pt.trace.json.gz").read_bytes()))  # type: ignore[no-any-return]


def digest(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.iterdir())}


def test_the_same_specification_gives_the_same_bytes(tmp_path: Path) -> None:
    change = {"cluster": {"clock_skew_ms": 5.0}, "capture": {"dropped_kernel_share": 0.05}}
    for name in ("one", "two"):
        write_run(simulate(two_nodes(**change)), tmp_path / name)
    assert digest(tmp_path / "one") == digest(tmp_path / "two")
    write_run(simulate(two_nodes(seed=4, **change)), tmp_path / "other")
    assert digest(tmp_path / "other") != digest(tmp_path / "one")


def test_a_run_is_one_trace_per_rank_and_two_documents(tmp_path: Path) -> None:
    spec = two_nodes(capture={"missing_ranks": [3]})
    files = write_run(simulate(spec), tmp_path / "run")
    names = {f"rank{rank}.pt.trace.json.gz" for rank in range(8) if rank != 3} | {"run.json", "truth.json"}
    assert {path.name for path in files} == names
    assert {path.name for path in (tmp_path / "run").iterdir()} == names
    assert [path.name for path in tmp_path.iterdir()] == ["run"]  # no draft left behind


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    run = simulate(two_nodes())
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds something"):
        write_run(run, tmp_path)
    with pytest.raises(UsageError, match="holds something"):
        write_run(run, tmp_path, overwrite=True)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    write_run(simulate(two_nodes()), tmp_path)
    assert len(list(tmp_path.iterdir())) == 10


def test_overwriting_needs_to_be_allowed(tmp_path: Path) -> None:
    write_run(simulate(two_nodes()), tmp_path / "run")
    with pytest.raises(UsageError, match="--force"):
        write_run(simulate(two_nodes()), tmp_path / "run")
    write_run(simulate(two_nodes(capture={"missing_ranks": [0]})), tmp_path / "run", overwrite=True)
    assert not (tmp_path / "run" / "rank0.pt.trace.json.gz").exists()


def test_a_failure_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = simulate(two_nodes())

    def full(*_args: object, **_kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(UsageError, match="No space left"):
        write_run(run, tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_trace_says_that_it_is_simulated_and_by_whom_it_was_recorded(tmp_path: Path) -> None:
    write_run(simulate(two_nodes(two_d={"group_size": 4})), tmp_path / "run")
    trace = read(tmp_path / "run", 5)
    assert trace["simulated"] is True
    assert trace["distributedInfo"]["rank"] == 5
    assert trace["distributedInfo"]["world_size"] == 8
    groups = {one["pg_desc"]: one["ranks"] for one in trace["distributedInfo"]["pg_config"]}
    assert groups == {"default_pg": list(range(8)), "sharding_pg": [4, 5, 6, 7], "replica_pg": [1, 5]}
    assert trace["baseTimeNanoseconds"] > 0
    assert len(trace["deviceProperties"]) == 4
    assert trace["host_name"] == "node1"


def test_kernels_carry_the_arguments_of_their_collective(tmp_path: Path) -> None:
    run = simulate(two_nodes(capture={"sequence_numbers": True, "strays": False}))
    write_run(run, tmp_path / "run")
    events = read(tmp_path / "run", 2)["traceEvents"]
    exchanges = [
        one["args"]
        for one in events
        if one.get("cat") == "kernel" and one["args"].get("Collective name") == "all_to_allv"
    ]
    pooled = next(one for one in exchanges if one["dtype"] == "Float")
    splits = json.loads(pooled["In split size"])
    assert splits == [512 * 4 * 128] * 8
    assert sum(splits) == pooled["In msg nelems"]
    assert sum(json.loads(pooled["Out split size"])) == pooled["Out msg nelems"]
    assert json.loads(pooled["Process Group Ranks"]) == list(range(8))
    assert pooled["Group size"] == 8
    numbers = [one["Seq"] for one in exchanges]
    assert numbers == sorted(set(numbers))


def test_every_kernel_has_a_launch_and_an_operator_around_it(tmp_path: Path) -> None:
    write_run(simulate(two_nodes(capture={"strays": False})), tmp_path / "run")
    spans = [one for one in read(tmp_path / "run", 0)["traceEvents"] if one["ph"] == "X"]
    launches = {
        one["args"]["correlation"]: one
        for one in spans
        if one["cat"] == "cuda_runtime" and "External id" in one["args"]
    }
    operators = {one["args"]["External id"]: one for one in spans if one["cat"] == "cpu_op"}
    kernels = [one for one in spans if one["cat"] in {"kernel", "gpu_memcpy"}]
    assert len(kernels) == len(launches)
    for kernel in kernels:
        launch = launches[kernel["args"]["correlation"]]
        operator = operators[kernel["args"]["External id"]]
        assert operator["ts"] <= launch["ts"] < kernel["ts"]
        assert launch["ts"] + launch["dur"] <= operator["ts"] + operator["dur"] + 1e-3


def test_work_launched_before_the_capture_has_no_launch_and_no_arguments(tmp_path: Path) -> None:
    write_run(simulate(two_nodes()), tmp_path / "run")
    spans = [one for one in read(tmp_path / "run", 0)["traceEvents"] if one["ph"] == "X"]
    launched = {one["args"]["correlation"] for one in spans if one["cat"] == "cuda_runtime"}
    strays = [one for one in spans if one["cat"] == "kernel" and one["args"]["correlation"] not in launched]
    assert strays
    assert not any("Collective name" in one["args"] for one in strays)


def test_lost_events_keep_their_launch(tmp_path: Path) -> None:
    spec = two_nodes(capture={"dropped_kernel_share": 0.3, "dropped_kernel_ranks": [1]})
    write_run(simulate(spec), tmp_path / "lossy")
    write_run(simulate(two_nodes()), tmp_path / "whole")

    def count(folder: str, rank: int, category: str) -> int:
        return sum(one.get("cat") == category for one in read(tmp_path / folder, rank)["traceEvents"])

    assert count("lossy", 1, "cuda_runtime") == count("whole", 1, "cuda_runtime")
    assert 0.6 < count("lossy", 1, "kernel") / count("whole", 1, "kernel") < 0.8
    assert count("lossy", 0, "kernel") == count("whole", 0, "kernel")


def test_options_leave_out_what_only_viewers_need(tmp_path: Path) -> None:
    spec = two_nodes(capture={"operators": False, "flows": False, "gpu_annotations": True})
    write_run(simulate(spec), tmp_path / "run")
    events = read(tmp_path / "run", 0)["traceEvents"]
    assert {one["name"] for one in events if one.get("cat") == "cpu_op"} == {"record_param_comms"}
    assert not [one for one in events if one["ph"] in "sf"]
    assert [
        one for one in events if one.get("cat") == "gpu_user_annotation" and one["name"] == "## forward ##"
    ]


def test_an_amd_run_has_hip_names(tmp_path: Path) -> None:
    write_run(simulate(two_nodes(cluster={"gpu": "MI300X"})), tmp_path / "run")
    events = read(tmp_path / "run", 0)["traceEvents"]
    runtime = {one["name"] for one in events if one.get("cat") == "cuda_runtime"}
    assert runtime
    assert all(name.startswith("hip") for name in runtime)


def test_the_manifest_describes_the_run(tmp_path: Path) -> None:
    write_run(simulate(two_nodes()), tmp_path / "run")
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    assert manifest["schema_version"] == 1
    assert manifest["simulated"] is True
    assert manifest["nodes"] == [{"node": 0, "ranks": [0, 1, 2, 3]}, {"node": 1, "ranks": [4, 5, 6, 7]}]
    assert len(manifest["tables"]) == 12
    shards = manifest["sharding_plan"]["big_0"]["shards"]
    assert [one["rank"] for one in shards] == list(range(8))
    assert shards[-1]["rows"] == [875_000, 1_000_000]
    counted = manifest["measured_tables"]["tables"]["big_0"]
    assert sum(one["ids_per_step"] for one in counted.values()) == 8 * 512 * 10
    dim = manifest["tables"][0]["dim"]
    assert sum(one["read_bytes_per_step"] for one in counted.values()) == 8 * 512 * 10 * dim * 4
    assert [one["step"] for one in manifest["steps"]] == [25, 26, 27, 28, 29]


def test_the_truth_tells_what_was_injected(tmp_path: Path) -> None:
    spec = two_nodes(
        cluster={"clock_skew_ms": 10.0}, stragglers=[{"rank": 5, "compute_ms": 3.0, "steps": [1, 3]}]
    )
    run = simulate(spec)
    write_run(run, tmp_path / "run")
    truth = json.loads((tmp_path / "run" / "truth.json").read_text())
    assert truth["injected"]["late"] == [
        {"rank": 5, "kind": "compute", "ms": 3.0, "step": 26},
        {"rank": 5, "kind": "compute", "ms": 3.0, "step": 28},
    ]
    offsets = truth["injected"]["clock_offset_ns"]
    assert len(set(offsets[:4])) == len(set(offsets[4:])) == 1
    assert all(abs(offset) <= 10_000_000 for offset in offsets)
    assert truth["spec"]["seed"] == 3
    assert {one["step"] for one in truth["collectives"]} == {25, 26, 27, 28, 29}
