"""What really happened in a simulated run, by the definitions of the analysis but without its code.

Windows: from the first device event launched in a step to the first launched in the next; the last step's is
as long as its CPU step. A moment under several collectives counts as transfer if any of them transfers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from traceinsight.base import intervals
from traceinsight.base.intervals import Spans
from traceinsight.simulate.machine import DEVICE_KINDS, Meeting, Row
from traceinsight.simulate.spec import Spec

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class StepTruth:
    """One step; every array has shape (ranks,), ns. ``end_ns``: when the rank's compute of the step ended."""

    step: int
    start_ns: Int64
    window_ns: Int64
    end_ns: Int64
    compute_ns: Int64
    exposed_transfer_ns: Int64
    exposed_wait_ns: Int64


@dataclass(frozen=True, slots=True)
class Truth:
    """All steps, and the speed of the job.

    ``step_ns`` is the time between the ends of the compute of consecutive steps (last rank), averaged over
    all captured steps but the first; ``examples_per_s`` is of the whole job.
    """

    steps: tuple[StepTruth, ...]
    step_ns: float
    examples_per_s: float


def measure_truth(spec: Spec, rows: Sequence[Row], meetings: Sequence[Meeting]) -> Truth:
    """Measure a run."""
    numbers = [spec.capture.first_step + index for index in range(spec.capture.steps)]
    windows = _windows(rows, numbers)
    ends = [_compute_end(rows, number) for number in numbers]
    steps = [
        StepTruth(number, start, length, end, *(np.zeros(spec.world_size, dtype=np.int64) for _ in range(3)))
        for number, (start, length), end in zip(numbers, windows, ends, strict=True)
    ]
    kernels = [row for row in rows if row.kind == "kernel" and row.collective is None]
    bounds = np.array([[row.start_ns, row.start_ns + row.dur_ns] for row in kernels])
    arrivals = np.array([[one.arrival_ns, one.last_ns, one.end_ns] for one in meetings])
    for rank in range(spec.world_size):
        compute = intervals.union(bounds[:, 0, rank], bounds[:, 1, rank])
        transfer, wait = _exposed(arrivals[:, :, rank], compute) if len(arrivals) else (intervals.EMPTY,) * 2
        for step in steps:
            window = int(step.start_ns[rank]), int(step.start_ns[rank] + step.window_ns[rank])
            for target, spans in (
                (step.compute_ns, compute),
                (step.exposed_transfer_ns, transfer),
                (step.exposed_wait_ns, wait),
            ):
                target[rank] = intervals.measure(intervals.clip(spans, *window))
    step_ns = _step_ns([int(end.max()) for end in ends], int(windows[0][0].min()))
    return Truth(tuple(steps), step_ns, spec.world_size * spec.batch_per_rank / step_ns * 1e9)


def _exposed(arrivals: Int64, compute: Spans) -> tuple[Spans, Spans]:
    transfer = intervals.union(arrivals[:, 1], arrivals[:, 2])
    wait = intervals.subtract(intervals.union(arrivals[:, 0], arrivals[:, 1]), transfer)
    return intervals.subtract(transfer, compute), intervals.subtract(wait, compute)


def _windows(rows: Sequence[Row], numbers: Sequence[int]) -> list[tuple[Int64, Int64]]:
    first = [
        np.min([row.start_ns for row in rows if row.step == number and row.kind in DEVICE_KINDS], axis=0)
        for number in numbers
    ]
    last_cpu = next(row.dur_ns for row in rows if row.name == f"ProfilerStep#{numbers[-1]}")
    lengths = [after - begin for begin, after in pairwise(first)]
    return list(zip(first, [*lengths, last_cpu], strict=True))


def _compute_end(rows: Sequence[Row], number: int) -> Int64:
    ends = [row.start_ns + row.dur_ns for row in rows if row.step == number and row.kind == "kernel"]
    return np.asarray(np.max(ends, axis=0), dtype=np.int64)


def _step_ns(ends: Sequence[int], start: int) -> float:
    if len(ends) == 1:
        return float(ends[0] - start)
    return (ends[-1] - ends[0]) / (len(ends) - 1)
