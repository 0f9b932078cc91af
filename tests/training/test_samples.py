"""What is published of a run: its numbers untouched, its private names gone."""

import gzip
import json
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from training.recipes import RECIPES
from training.samples import LARGEST_BYTES, SAMPLES, publish, scrub, step_spread

SAMPLE_TRACES = Path(__file__).resolve().parents[2] / "sample_traces"


def test_scrub_changes_host_and_path_and_no_number() -> None:
    text = '{"host_name": "gpu-17.corp", "ts": 5108387316511.276, "traceName": "/home/ann/r/x.tmp"}'
    assert scrub(text, "rank0.pt.trace.json.gz") == (
        '{"host_name": "node0", "ts": 5108387316511.276, "traceName": "rank0.pt.trace.json.gz"}'
    )


def write_run(folder: Path, trace: str) -> Path:
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    (folder / "rank0.pt.trace.json.gz").write_bytes(gzip.compress(trace.encode()))
    return folder


def test_publishing_replaces_the_earlier_ranks(tmp_path: Path) -> None:
    target = tmp_path / "sample"
    target.mkdir()
    (target / "rank7.pt.trace.json.gz").write_text("of an earlier, larger run")

    assert publish(write_run(tmp_path / "run", '{"traceEvents": []}'), target) == 0
    assert sorted(path.name for path in target.iterdir()) == ["rank0.pt.trace.json.gz", "run.json"]


def test_a_trace_that_still_names_this_machine_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    write_run(run, json.dumps({"traceEvents": [{"name": f"{run}/model.py(12): forward"}]}))

    assert publish(run, tmp_path / "sample") == 1
    assert str(run) in capsys.readouterr().err


def test_a_manifest_that_names_this_machine_is_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", '{"traceEvents": []}')
    (run / "run.json").write_text(json.dumps({"config": {"checkpoint": {"folder": str(Path.cwd())}}}))
    assert publish(run, tmp_path / "sample") == 1


def test_step_spread_looks_at_the_profiled_steps_only(tmp_path: Path) -> None:
    # wait 1 + warmup 1: steps 2, 3, 4 count. (110 - 90) / 100 = 0.2
    steps = [{"wall_ms": ms} for ms in (900, 500, 90, 100, 110, 700)]
    manifest = {"capture": {"wait": 1, "warmup": 1, "active": 3}, "steps": steps}
    (tmp_path / "run.json").write_text(json.dumps(manifest))
    assert step_spread(tmp_path) == pytest.approx(0.2)


# What was put in, and what the analysis must make of it: (ranks that suffer, rules that find something).
EXPECTED = {
    "healthy": ([], []),
    "late_rank": ([2], ["straggler"]),
    "slow_input": ([0, 1, 2, 3], ["input-bound"]),
    "hot_partition": ([3], ["straggler"]),
    # The link is what was slowed; that FP32 crosses it, and with nothing computing, is what makes it cost.
    "exposed_a2a_fp32": ([0, 1, 2, 3], ["slow-link", "unquantized-exchange", "exposed-all-to-all"]),
    "exposed_a2a_fp8": ([0, 1, 2, 3], ["slow-link", "exposed-all-to-all"]),
}


def manifest_of(name: str) -> dict[str, Any]:
    return json.loads((SAMPLE_TRACES / name / "run.json").read_text())


@pytest.mark.parametrize("name", SAMPLES)
def test_a_published_sample_is_complete_small_and_of_its_recipe(name: str) -> None:
    manifest = manifest_of(name)
    recipe = RECIPES[name]
    assert manifest["world_size"] == recipe.world_size
    assert manifest["batch_per_rank"] == recipe.data.batch_per_rank
    assert len(manifest["tables"]) == recipe.model.tables * (recipe.sharding.partitions or 1)
    suffer = [rank for fault in manifest["faults"] for rank in fault["ranks"]]
    assert suffer == EXPECTED[name][0]
    for rank in range(recipe.world_size):
        packed = (SAMPLE_TRACES / name / f"rank{rank}.pt.trace.json.gz").read_bytes()
        assert len(packed) < LARGEST_BYTES
        trace = json.loads(gzip.decompress(packed))
        assert trace["distributedInfo"]["rank"] == rank
        assert trace["host_name"] == "node0"
        steps = {e["name"] for e in trace["traceEvents"] if e["name"].startswith("ProfilerStep")}
        assert len(steps) == recipe.loop.active


@pytest.mark.parametrize("name", SAMPLES)
def test_the_analysis_finds_what_was_put_in_and_nothing_else(name: str, diagnose: Callable[..., Any]) -> None:
    found = diagnose(SAMPLE_TRACES / name)
    ranks, rules = EXPECTED[name]
    assert [finding.rule for finding in found.findings] == rules, found.verdict
    assert all(finding.ranks == ranks for finding in found.findings)


@pytest.mark.parametrize("name", ["late_rank", "slow_input", "hot_partition", "exposed_a2a_fp32"])
def test_the_cost_found_in_a_sample_is_the_true_one(name: str, diagnose: Callable[..., Any]) -> None:
    found = diagnose(SAMPLE_TRACES / name)
    (fault,) = manifest_of(name)["faults"]
    true_ms = statistics.median(fault["measured_ms_per_step"][step] for step in found.run.steps)
    assert found.findings[0].gain.step_ns.expected / 1e6 == pytest.approx(true_ms, rel=0.15)


@pytest.mark.parametrize("name", ["exposed_a2a_fp32", "exposed_a2a_fp8"])
def test_the_slow_link_of_a_sample_is_found_at_its_rate(name: str, diagnose: Callable[..., Any]) -> None:
    found = diagnose(SAMPLE_TRACES / name)
    (fault,) = manifest_of(name)["faults"]
    true_ms = statistics.median(fault["measured_ms_per_step"][step] for step in found.run.steps)
    (finding,) = (one for one in found.findings if one.rule == "slow-link")
    reached = {one.metric: one.value for one in finding.evidence}
    assert reached["link_rate"] == pytest.approx(fault["link_mbit"] / 8 / 1e3, rel=0.05)
    assert reached["link_busy"] / 1e6 == pytest.approx(true_ms, rel=0.05)
    assert found.roadmap[0].edit == "network=1.25"


def test_the_hot_partition_of_a_sample_is_named(diagnose: Callable[..., Any]) -> None:
    found = diagnose(SAMPLE_TRACES / "hot_partition")
    (fault,) = manifest_of("hot_partition")["faults"]
    assert found.stragglers[0].tables == [fault["table"]]
    assert fault["table"] in found.findings[0].title


def exposed_ns(found: Any) -> int:
    """What would be freed at best if no exchange were exposed."""
    (finding,) = (one for one in found.findings if one.rule == "exposed-all-to-all")
    freed: int = finding.gain.step_ns.expected
    return freed


def test_both_halves_of_the_exposed_exchange_are_found(diagnose: Callable[..., Any]) -> None:
    found = diagnose(SAMPLE_TRACES / "exposed_a2a_fp32")
    # Four ranks send 3/4 of 1,048,576 bytes over 400 Mbit/s = 50,000 bytes/ms: 4 x 786,432 / 50,000 = 63 ms
    # for either half. What the link carries before the last rank arrives counts as wait, not as transfer.
    halves = {
        row.phase: row.exposed_transfer_ns / 1e6
        for row in found.communication
        if row.label in {"## All2All_Pooled_fwd ##", "## All2All_Pooled_bwd ##"}
    }
    assert set(halves) == {"forward", "backward"}
    assert all(0.5 * 63 < transfer_ms < 1.15 * 63 for transfer_ms in halves.values())
    gain_ms = exposed_ns(found) / 1e6
    assert sum(halves.values()) <= gain_ms < 1.05 * sum(halves.values())  # and next to nothing besides


def test_the_prediction_of_fp8_is_met_by_the_run_that_uses_it(diagnose: Callable[..., Any]) -> None:
    wide, narrow = (diagnose(SAMPLE_TRACES / name) for name in ("exposed_a2a_fp32", "exposed_a2a_fp8"))
    left = exposed_ns(narrow) / exposed_ns(wide)
    assert 0.2 < left < 0.35  # a quarter of the bytes and their scales, and latencies that do not shrink


def test_fp8_takes_the_bytes_off_the_link_that_the_kernel_counts() -> None:
    wide, narrow = (manifest_of(name) for name in ("exposed_a2a_fp32", "exposed_a2a_fp8"))
    crossed = []  # bytes per step, from the time the link of 50,000 bytes/ms needs for them
    for manifest in (wide, narrow):
        (fault,) = manifest["faults"]
        assert fault["link_mbit"] == 400
        crossed.append(statistics.median(fault["measured_ms_per_step"]) * 50_000)
    # Rows of 128 values: 132 bytes instead of 512. Of 4 ranks' 1,048,576 bytes in either direction 3/4 cross;
    # headers of packets of 9,000 bytes, and acknowledgements, add some per cent.
    payload = 2 * 4 * 0.75 * 1_048_576 * (1 - 132 / 512)
    assert payload <= crossed[0] - crossed[1] <= 1.03 * payload
