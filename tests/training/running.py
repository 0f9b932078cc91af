"""Runs of the training job as a user starts them, and what they leave behind."""

import gzip
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
RECIPE = "frm_cpu_2rank"

MEASURED = pytest.mark.measured
"""For tests of times taken from a real run: each try is a run of its own, and nothing else runs beside it.

What else a machine does disturbs one run; an error of ours is in every run and fails all three tries.
"""


def attempt(request: pytest.FixtureRequest) -> int:
    """Which try of a test this is, from 1: a run that was disturbed must not be judged again."""
    return int(getattr(request.node, "execution_count", 1))


@dataclass(frozen=True)
class Run:
    """A finished run."""

    status: int
    output: str
    folder: Path

    def manifest(self) -> dict[str, Any]:
        return json.loads((self.folder / "run.json").read_text())

    def events(self, rank: int) -> list[dict[str, Any]]:
        packed = (self.folder / f"rank{rank}.pt.trace.json.gz").read_bytes()
        return json.loads(gzip.decompress(packed))["traceEvents"]

    def entropies(self) -> list[float]:
        """Normalized entropy of each window."""
        return [window["normalized_entropy"] for window in self.manifest()["windows"]]

    def waited_for_ms(self, steps: Sequence[int]) -> float:
        """Median of what the others waited for the fault of one rank, by the machine's clock."""
        (fault,) = self.manifest()["faults"]
        return statistics.median(fault["cost_ms_per_step"][step] for step in steps)

    def true_cost_ms(self, steps: Sequence[int]) -> float:
        """Median cost of the injected fault over ``steps``."""
        (fault,) = self.manifest()["faults"]
        return statistics.median(fault["measured_ms_per_step"][step] for step in steps)


def command(traces: Path, *arguments: str, recipe: str = RECIPE) -> list[str]:
    return [sys.executable, "-m", "training", "--recipe", recipe, "--traces", str(traces), *arguments]


def settings(*assignments: str) -> list[str]:
    """``--set`` before each assignment."""
    return [part for assignment in assignments for part in ("--set", assignment)]


def run_training(
    traces: Path,
    *arguments: str,
    recipe: str = RECIPE,
    environment: dict[str, str] | None = None,
    seconds: float = 150,
) -> Run:
    """Run ``python -m training`` as a user would; its processes end with it."""
    process = subprocess.Popen(
        command(traces, *arguments, recipe=recipe),
        cwd=REPOSITORY,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except BaseException:
        process.terminate()  # torchrun ends its ranks on SIGTERM
        try:
            process.wait(timeout=40)
        finally:
            process.kill()
        raise
    return Run(process.returncode, output, traces / recipe)


def alive(pid: int) -> bool:
    """Whether it is there and not only waits for its parent to read how it ended."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
