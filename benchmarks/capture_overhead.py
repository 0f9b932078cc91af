"""What ``traceinsight.capture`` costs outside its active window.

    python benchmarks/capture_overhead.py

Two measurements in one process without a process group. *Per call*: ``Capture.step()`` and the profiler's
own bookkeeping, in steps that are only waited for, over many calls. *Per step*: a step of matrix products
with and without the capture, in turns, so that what else the machine does falls on both.

Figures stand in docs/capture.md.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import tempfile
import time
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path

import torch

from traceinsight.capture import Capture

NEVER = 10**9
"""Steps to wait: the active window lies beyond the end of the measurement."""


def call_us(calls: int) -> float:
    """Median time of ``Capture.step()`` in microseconds."""
    times = []
    with (
        tempfile.TemporaryDirectory() as folder,
        Capture(folder, wait=NEVER, batch_per_rank=512) as recording,
    ):
        for _ in range(calls):
            began = time.perf_counter_ns()
            recording.step()
            times.append(time.perf_counter_ns() - began)
    return statistics.median(times) / 1e3


def steps_ms(count: int, size: int, *, captured: bool) -> list[float]:
    """Time of each of ``count`` steps of one matrix product, milliseconds."""
    left, right, times = torch.ones(size, size), torch.ones(size, size), []
    with tempfile.TemporaryDirectory() as folder:
        capture = Capture(Path(folder), wait=NEVER, batch_per_rank=512) if captured else nullcontext()
        with capture as recording:
            for _ in range(count):
                began = time.perf_counter_ns()
                torch.mm(left, right)
                if recording is not None:
                    recording.step()
                times.append((time.perf_counter_ns() - began) / 1e6)
    return times


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--calls", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--steps", type=int, default=40, help="per round")
    parser.add_argument("--size", type=int, default=640, help="of the square matrices of a step")
    options = parser.parse_args()
    torch.set_num_threads(1)

    steps_ms(options.steps, options.size, captured=True)  # what is loaded and allocated the first time
    plain: list[float] = []
    captured: list[float] = []
    for _ in range(options.rounds):
        plain += steps_ms(options.steps, options.size, captured=False)
        captured += steps_ms(options.steps, options.size, captured=True)
    per_call = call_us(options.calls)
    # The lower quartile: another process on the core only ever adds.
    quiet_plain, quiet_captured = (statistics.quantiles(times)[0] for times in (plain, captured))
    print(
        json.dumps(
            {
                "step_call_us": round(per_call, 2),
                "plain_step_ms": round(quiet_plain, 4),
                "captured_step_ms": round(quiet_captured, 4),
                "measured_overhead_share": round(quiet_captured / quiet_plain - 1, 5),
                "call_share_of_10_ms_step": round(per_call / 10_000, 6),
                "torch": torch.__version__,
                "machine": platform.processor() or platform.machine(),
                "date": datetime.now(UTC).date().isoformat(),
            },
            indent=1,
        )
    )


if __name__ == "__main__":
    main()
