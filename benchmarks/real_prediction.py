"""Predictions held against real runs: the training job with and without each of its faults.

    python benchmarks/real_prediction.py [--times 3]

Needs the training stack (`make test` installs it); about a minute and a half per repetition. Two gloo ranks,
100 ms of emulated accelerator time per step. The edit that models the fault's removal is applied to the run
with the fault; the step it predicts is held against the same job run without the fault. The table is part of
docs/accuracy.md.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from traceinsight import api  # noqa: E402 - the repository must be on the path first

RECIPE = "frm_cpu_2rank"
BASE = (
    "emulation.forward_ms=40", "emulation.backward_ms=60", "emulation.lookup_us_per_1k_ids=0",
    "loop.steps=17", "loop.wait=4", "loop.warmup=3", "loop.active=9", "loop.window=17",
)  # fmt: skip
DELAY = "fault.delay_ms=60"
HOT = ("sharding.partitions=2", "data.zipf_exponent=0", "emulation.lookup_us_per_1k_ids=60000")


@dataclass(frozen=True)
class Case:
    """A fault, the edit that takes it away, and what both runs have in common beside ``BASE``."""

    fault: str
    settings: tuple[str, ...]
    edit: str
    common: tuple[str, ...] = ()


CASES = (
    Case("late rank", ("fault.kind=late_rank", "fault.rank=1", DELAY), "no-straggler=1"),
    Case("slow input, one rank", ("fault.kind=slow_input", "fault.rank=1", DELAY), "no-straggler=1"),
    Case("slow input, all ranks", ("fault.kind=slow_input", "fault.rank=-1", DELAY), "no-input-wait"),
    Case(
        "host stalls, one rank",
        ("fault.kind=host_sync", "fault.rank=1", DELAY, "fault.count=4"),
        "no-straggler=1",
    ),
    Case(
        "hot partition",
        ("fault.kind=hot_partition", "fault.table=2", "fault.partition=1", "fault.share=0.8"),
        "no-straggler=1",
        HOT,
    ),
    Case(
        "slow link, 100 Mbit/s",
        ("fault.kind=slow_link", "fault.link_mbit=100"),
        "network=1.25",
        ("model.dim=128",),
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """Step times in ns; ``predicted`` for the run with the fault, ``without`` measured."""

    with_fault_ns: int
    predicted_ns: int
    without_ns: int

    @property
    def error(self) -> float:
        return self.predicted_ns / self.without_ns - 1


def train(folder: Path, settings: tuple[str, ...]) -> Path:
    """One run of the training job; returns the folder of its traces."""
    command = [sys.executable, "-m", "training", "--recipe", RECIPE, "--traces", str(folder)]
    for setting in (*BASE, *settings):
        command += ["--set", setting]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout[-2000:] + done.stderr[-2000:])
    return folder / RECIPE


def measure(case: Case) -> Outcome:
    """Both runs, and the prediction for the first."""
    with tempfile.TemporaryDirectory() as folder:
        before = train(Path(folder) / "with", (*case.common, *case.settings))
        after = train(Path(folder) / "without", case.common)
        found = api.compare(api.load(before), api.load(after), edits=[case.edit])
    (held,) = found.predictions
    if held.step_ns is None or held.measured_ns is None or found.step_time.before_ns is None:
        raise SystemExit(f"{case.fault}: not predicted: {held.not_predicted}")
    return Outcome(found.step_time.before_ns, held.step_ns.expected, held.measured_ns)


def row(case: Case, outcomes: list[Outcome]) -> str:
    """The outcome with the median error; all errors beside it."""
    typical = sorted(outcomes, key=lambda one: one.error)[len(outcomes) // 2]
    errors = ", ".join(f"{one.error:+.1%}" for one in outcomes)
    times = (typical.with_fault_ns, typical.predicted_ns, typical.without_ns)
    cells = " | ".join(f"{ns / 1e6:.1f} ms" for ns in times)
    return f"| {case.fault} | `{case.edit}` | {cells} | {typical.error:+.1%} | {errors} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--times", type=int, default=3, help="repetitions of every pair of runs")
    options = parser.parse_args()
    print("| fault | edit | with it | predicted | without it | error | all errors |")
    print("|---|---|---|---|---|---|---|")
    medians = []
    for case in CASES:
        outcomes = [measure(case) for _ in range(options.times)]
        medians.append(statistics.median(abs(one.error) for one in outcomes))
        print(row(case, outcomes), flush=True)
    print(f"\nMedian over faults of the median error: {statistics.median(medians):.1%}.")


if __name__ == "__main__":
    main()
