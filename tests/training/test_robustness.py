"""What goes wrong in a run ends it with one clear sentence, or costs the traces only."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.training.running import REPOSITORY, alive, command, run_training, settings
from tests.training.test_run import children, wait_until

pytestmark = pytest.mark.slow

EARLY = settings("loop.wait=0", "loop.warmup=1", "loop.active=2", "loop.window=5")
TRACES = ["rank0.pt.trace.json.gz", "rank1.pt.trace.json.gz"]


def traces(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("*.gz"))


def test_a_loss_that_is_not_finite_stops_every_rank_and_keeps_the_traces(tmp_path: Path) -> None:
    run = run_training(tmp_path, *EARLY, *settings("loop.dense_lr=1e38", "loop.embedding_lr=1e38"))

    assert run.status == 3
    assert "error: the loss is " in run.output
    assert "training stops. Lower loop.embedding_lr or loop.dense_lr, or set dense.clip_norm" in run.output
    assert run.output.rstrip().endswith(
        f"Traces written so far are in {run.folder}"
    )  # and torchrun is silent
    assert "Traceback" not in run.output
    assert traces(run.folder) == TRACES  # steps 1 and 2; the window that found it ended after step 4
    assert len(run.manifest()["steps"]) >= 3


@pytest.fixture
def taken_port() -> Iterator[int]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def test_a_port_in_use_says_which_and_how_to_choose_another(tmp_path: Path, taken_port: int) -> None:
    environment = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1"}
    environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(taken_port)}

    run = run_training(tmp_path, *settings("world_size=1"), environment=environment)

    assert run.status == 2
    assert f"127.0.0.1:{taken_port} is in use: choose another (torchrun --master-port)" in run.output


def test_a_full_disk_costs_the_traces_and_not_the_training(tmp_path: Path) -> None:
    # Writing beyond 100 kB fails as on a full disk: a trace is larger, run.json of few steps is not.
    limited = ["sh", "-c", 'ulimit -f 100; exec "$@"', "sh", *command(tmp_path, *EARLY)]
    done = subprocess.run(
        [*limited, *settings("loop.steps=10")],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "10 steps, loss" in done.stdout
    for rank in (0, 1):
        assert f"traceinsight.capture: rank {rank}: could not write the trace" in done.stderr
    assert sorted(path.name for path in (tmp_path / "frm_cpu_2rank").iterdir()) == ["run.json"]


class Endless:
    """A run that goes on until it is stopped; its traces are there when ``started`` returns.

    With a background loader per rank, as on GPUs: what torchrun sends a rank reaches those too.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "frm_cpu_2rank"
        self.process = subprocess.Popen(
            command(folder, *EARLY, *settings("loop.steps=1000000", "data.workers=1")),
            cwd=REPOSITORY,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def started(self) -> list[int]:
        """The processes of the ranks."""
        wait_until(lambda: traces(self.folder) == TRACES, seconds=120)
        return children(self.process.pid)

    def ended(self) -> str:
        """What it said, when all of it is gone."""
        output, _ = self.process.communicate(timeout=90)
        return output


@pytest.fixture
def endless(tmp_path: Path) -> Iterator[Endless]:
    run = Endless(tmp_path)
    yield run
    if run.process.poll() is None:
        run.process.terminate()
        run.process.wait(timeout=60)


def test_a_killed_rank_ends_the_others_with_a_reason_and_the_traces_stay(endless: Endless) -> None:
    ranks = endless.started()
    ranks += [worker for rank in ranks for worker in children(rank)]
    assert len(ranks) == 4
    os.kill(ranks[1], signal.SIGKILL)
    output = endless.ended()

    assert endless.process.returncode == 1
    assert "error: rank 0 stops: another rank is gone" in output
    assert f"Traces written so far are in {endless.folder}" in output
    assert "rank 1 was killed by SIGKILL (often: the memory was full)" in output.splitlines()[-1]
    assert "DataLoader" not in output
    assert "Traceback" not in output
    assert traces(endless.folder) == TRACES
    wait_until(lambda: not any(alive(pid) for pid in ranks), seconds=2)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_stops_all_ranks_after_the_same_step(endless: Endless, number: signal.Signals) -> None:
    endless.started()
    endless.process.send_signal(number)
    output = endless.ended()

    assert endless.process.returncode == 128 + number
    *_, said, last = output.splitlines()
    assert "frm_cpu_2rank: stopped as asked after " in said
    assert last == f"stopped by {number.name}"
    assert "Traceback" not in output
    steps = int(said.split("stopped as asked after ")[1].split()[0])
    assert steps % 5 == 0  # ranks agree at the end of a window


def test_a_start_that_is_no_checkpoint_is_the_last_word(tmp_path: Path) -> None:
    run = run_training(tmp_path, *settings(f"checkpoint.start_from={tmp_path}"))
    assert run.status == 4
    assert run.output.splitlines()[-1].startswith(
        f"error: checkpoint.start_from = {tmp_path} is no checkpoint"
    )


def test_no_gpu_is_said_and_not_worked_around(tmp_path: Path) -> None:
    probe = "import sys, torch; sys.exit(torch.cuda.is_available())"
    if subprocess.run([sys.executable, "-c", probe], check=False).returncode:
        pytest.skip("this machine has a GPU")
    environment = {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "8", "MASTER_PORT": "1"}
    run = run_training(tmp_path, recipe="frm_1node_8gpu", environment=environment)
    assert run.status == 2
    assert "device = 'cuda' is not allowed here: it must be cpu, there is no GPU" in run.output
