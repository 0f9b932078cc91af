"""What is published of a run: its numbers untouched, its private names gone."""

import gzip
import json
from pathlib import Path

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


def test_step_spread_looks_at_the_profiled_steps_only(tmp_path: Path) -> None:
    # wait 1 + warmup 1: steps 2, 3, 4 count. (110 - 90) / 100 = 0.2
    steps = [{"wall_ms": ms} for ms in (900, 500, 90, 100, 110, 700)]
    manifest = {"capture": {"wait": 1, "warmup": 1, "active": 3}, "steps": steps}
    (tmp_path / "run.json").write_text(json.dumps(manifest))
    assert step_spread(tmp_path) == pytest.approx(0.2)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_published_sample_is_complete_small_and_of_its_recipe(name: str) -> None:
    manifest = json.loads((SAMPLE_TRACES / name / "run.json").read_text())
    recipe = RECIPES[name]
    assert manifest["world_size"] == recipe.world_size
    assert manifest["batch_per_rank"] == recipe.data.batch_per_rank
    assert len(manifest["tables"]) == recipe.model.tables
    assert [fault["rank"] for fault in manifest["faults"]] == ([2] if name == "late_rank" else [])
    for rank in range(recipe.world_size):
        packed = (SAMPLE_TRACES / name / f"rank{rank}.pt.trace.json.gz").read_bytes()
        assert len(packed) < LARGEST_BYTES
        trace = json.loads(gzip.decompress(packed))
        assert trace["distributedInfo"]["rank"] == rank
        assert trace["host_name"] == "node0"
        steps = {e["name"] for e in trace["traceEvents"] if e["name"].startswith("ProfilerStep")}
        assert len(steps) == recipe.loop.active
