"""Real runs of two gloo processes: what they learn, and what they leave behind."""

import json
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.training.running import MEASURED, REPOSITORY, Run, attempt, command, run_training, settings

pytestmark = pytest.mark.slow

DELAY_MS = 30.0
LATE = settings("fault.kind=late_rank", "fault.rank=1", f"fault.delay_ms={DELAY_MS}")


@pytest.fixture(scope="module")
def runs() -> dict[int, Run]:
    """The runs so far, by try."""
    return {}


@pytest.fixture
def late_run(
    request: pytest.FixtureRequest, runs: dict[int, Run], tmp_path_factory: pytest.TempPathFactory
) -> Run:
    this = attempt(request)
    if this not in runs:
        secrets = {"NCCL_NET_TOKEN": "hunter2", "AWS_SECRET_ACCESS_KEY": "hunter2", "NCCL_PROTO": "Simple"}
        runs[this] = run_training(tmp_path_factory.mktemp("late"), *LATE, environment=secrets)
    assert runs[this].status == 0, runs[this].output
    return runs[this]


def test_the_model_learns(late_run: Run) -> None:
    entropies = late_run.entropies()
    assert len(entropies) == 6  # 60 steps in windows of 10
    # Guessing the click rate gives 1. Seeded data and initial weights: measured 0.975 and 0.860.
    assert entropies[-1] < entropies[0] - 0.07
    assert entropies[-1] < 0.9


def test_entropy_is_of_all_ranks_together(late_run: Run) -> None:
    manifest = late_run.manifest()
    first = manifest["windows"][0]
    assert first["examples"] == 10 * 2 * 256  # steps x ranks x examples
    # Batches are of one size, so the window's loss is the mean of its steps' losses.
    losses = [step["loss"] for step in manifest["steps"][:10]]
    assert first["loss"] == pytest.approx(statistics.mean(losses), rel=1e-6)


def test_one_trace_per_rank_with_every_phase_of_every_step(late_run: Run) -> None:
    traces = sorted(path.name for path in late_run.folder.glob("*"))
    assert traces == ["rank0.pt.trace.json.gz", "rank1.pt.trace.json.gz", "run.json"]
    phases = ("load_batch", "copy_batch_to_gpu", "zero_grad", "forward", "backward", "optimizer")
    for rank in (0, 1):
        names = [event["name"] for event in late_run.events(rank)]
        # wait 20, warmup 3, active 5: steps 23 to 27
        assert {name for name in names if name.startswith("ProfilerStep")} == {
            f"ProfilerStep#{step}" for step in range(23, 28)
        }
        for phase in phases:
            assert names.count(f"## {phase} ##") == 5, (rank, phase)


@MEASURED
def test_the_trace_shows_who_waits(late_run: Run) -> None:
    def splits_wait_ms(rank: int) -> float:
        waits = [
            e["dur"] for e in late_run.events(rank) if e["name"] == "## SplitsAllToAllAwaitable wait() ##"
        ]
        return statistics.median(waits) / 1000

    # Rank 1 comes 30 ms late to the first exchange of forward, so rank 0 waits there, and rank 1 does not.
    assert splits_wait_ms(0) > DELAY_MS * 0.6
    assert splits_wait_ms(1) < DELAY_MS * 0.4


def test_the_manifest_describes_the_run(late_run: Run) -> None:
    manifest = late_run.manifest()
    assert (manifest["schema_version"], manifest["run_id"], manifest["world_size"]) == (1, "frm_cpu_2rank", 2)
    assert manifest["nodes"] == [{"node": 0, "ranks": [0, 1]}]
    assert manifest["batch_per_rank"] == 256
    assert [table["name"] for table in manifest["tables"]] == [f"table_{i}" for i in range(4)]
    assert {(t["rows"], t["dim"], t["pooling"], t["mean_ids"]) for t in manifest["tables"]} == {
        (500, 16, "SUM", 4)
    }
    assert manifest["versions"].keys() >= {"python", "torch", "torchrec"}
    assert all(step["examples_per_s"] > 0 for step in manifest["steps"])


def test_the_sharding_plan_places_every_row_once(late_run: Run) -> None:
    plan = late_run.manifest()["sharding_plan"]
    assert sorted(plan) == [f"table_{i}" for i in range(4)]
    owners = []
    for placed in plan.values():
        (shard,) = placed["shards"]  # table-wise: one shard is the whole table
        assert (shard["rows"], shard["columns"]) == ([0, 500], [0, 16])
        assert placed["ranks"] == [shard["rank"]]
        owners.append(shard["rank"])
    assert sorted(owners) == [0, 0, 1, 1]  # equal tables are dealt out evenly


@MEASURED
def test_the_true_cost_of_the_fault_is_recorded(late_run: Run) -> None:
    (fault,) = late_run.manifest()["faults"]
    assert (fault["kind"], fault["rank"], fault["configured_ms_per_step"]) == ("late_rank", 1, DELAY_MS)
    assert len(fault["measured_ms_per_step"]) == 60
    assert min(fault["measured_ms_per_step"]) >= DELAY_MS  # a sleep is never shorter than asked
    assert statistics.median(fault["measured_ms_per_step"]) < DELAY_MS * 1.2


def test_no_secret_is_written(late_run: Run) -> None:
    assert late_run.manifest()["environment"]["NCCL_PROTO"] == "Simple"
    assert "hunter2" not in (late_run.folder / "run.json").read_text()
    for rank in (0, 1):
        assert "hunter2" not in json.dumps(late_run.events(rank))


def test_an_unwritable_folder_costs_the_traces_and_not_the_training(tmp_path: Path) -> None:
    # A file where the folder should be: unwritable for every user, root included.
    (tmp_path / "frm_cpu_2rank").write_text("in the way")

    run = run_training(tmp_path, "--set", "loop.steps=30", "--set", "loop.wait=2")

    assert run.status == 0, run.output
    for rank in (0, 1):
        assert f"traceinsight.capture: rank {rank}: could not start" in run.output
    assert "30 steps, loss" in run.output
    assert (tmp_path / "frm_cpu_2rank").read_text() == "in the way"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--set", "model.dim=5"],
            "error: model.dim = 5 is not allowed: it must be a positive multiple of 4",
        ),
        (["--recipe", "frm"], "error: recipe = 'frm' is not known: it must be one of frm_cpu_2rank"),
    ],
)
def test_a_wrong_value_is_refused_before_any_process_starts(
    tmp_path: Path, arguments: list[str], message: str
) -> None:
    run = run_training(tmp_path, *arguments)
    assert run.status == 2
    assert run.output.startswith(message)


def test_sigterm_ends_every_rank(tmp_path: Path) -> None:
    endless = ["--set", "loop.steps=1000000", "--set", "loop.wait=2", "--set", "loop.active=1"]
    process = subprocess.Popen(command(tmp_path, *endless), cwd=REPOSITORY, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: len(list(tmp_path.glob("*/rank*.gz"))) == 2, seconds=90)
        ranks = children(process.pid)
    finally:
        process.terminate()
        status = process.wait(timeout=60)
    assert status != 0
    assert len(ranks) == 2
    assert [pid for pid in ranks if Path(f"/proc/{pid}").exists()] == []


def wait_until(condition: Callable[[], bool], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "nothing happened in time"
        time.sleep(0.1)


def children(pid: int) -> list[int]:
    """Processes started by any thread of ``pid``."""
    listed = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(child) for child in " ".join(listed).split()]


def test_a_world_of_another_size_says_how_to_start_it(tmp_path: Path) -> None:
    run = run_training(tmp_path, environment={"RANK": "0", "WORLD_SIZE": "4"})
    assert run.status == 2
    assert "start 2 or add --set world_size=4" in run.output
