"""Real runs of two ranks with checkpoints, for the tests that stop, kill and starve them."""

import json
import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]


def command(folder: Path, *settings: str) -> list[str]:
    """A run that keeps traces and checkpoints below ``folder``; a trace of the first steps only."""
    common = ["loop.wait=1", "loop.warmup=0", "loop.active=1", "loop.window=2"]
    common += [f"emulation.{time}=0" for time in ("forward_ms", "backward_ms", "lookup_us_per_1k_ids")]
    common += [f"checkpoint.folder={folder / 'checkpoints'}"]
    parts = [
        sys.executable,
        "-m",
        "training",
        "--recipe",
        "frm_cpu_2rank",
        "--traces",
        str(folder / "traces"),
    ]
    return [*parts, *(part for setting in [*common, *settings] for part in ("--set", setting))]


@contextmanager
def running(folder: Path, *settings: str) -> Iterator[subprocess.Popen[str]]:
    """A run of which nothing is left afterwards."""
    process = subprocess.Popen(command(folder, *settings), cwd=REPOSITORY, stderr=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        kill_all(process)
        process.communicate(timeout=30)


def kill_all(process: subprocess.Popen[str]) -> None:
    """SIGKILL to torchrun and to its ranks, which are in process groups of their own."""
    for pid in [process.pid, *ranks_of(process)] if process.poll() is None else []:
        os.kill(pid, signal.SIGKILL)


def run(folder: Path, *settings: str, largest_file: int | None = None) -> str:
    """Run to the end and return what was said on stderr."""

    def limit() -> None:
        # Fails a write in the middle, as a full disk does.
        if largest_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

    done = subprocess.run(
        command(folder, *settings),
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        preexec_fn=limit,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def losses(folder: Path) -> dict[int, float]:
    """Mean loss over all ranks of every step in run.json."""
    manifest: dict[str, Any] = json.loads((folder / "traces" / "frm_cpu_2rank" / "run.json").read_text())
    return {step["step"]: step["loss"] for step in manifest["steps"]}


def steps_in(folder: Path) -> list[int]:
    return sorted(int(path.name[5:]) for path in (folder / "checkpoints").glob("step-*"))


def wait_until(condition: Callable[[], object], process: subprocess.Popen[str], seconds: float = 90) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert process.poll() is None, "the run ended by itself"
        assert time.monotonic() < deadline, "nothing happened in time"
        time.sleep(0.002)


def ranks_of(process: subprocess.Popen[str]) -> list[int]:
    """The processes that torchrun started."""
    listed = [path.read_text() for path in Path(f"/proc/{process.pid}/task").glob("*/children")]
    return [int(child) for child in " ".join(listed).split()]
