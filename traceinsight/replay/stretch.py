"""Cutting a run into stretches of consecutive steady steps: each is replayed by itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.trace_set import TraceSet


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive steady steps that every rank captured."""

    steps: tuple[int, ...]

    def host_window_ns(self, trace: RankTrace) -> tuple[int, int]:
        """From the start of the first CPU step to the end of the last, on the rank's clock."""
        first, last = trace.step(self.steps[0]), trace.step(self.steps[-1])
        if first is None or last is None:
            raise ValueError(f"rank {trace.rank} lacks a step of {self.steps}")
        return first.cpu_start_ns, last.cpu_end_ns


def stretches(trace_set: TraceSet) -> list[Stretch]:
    """The maximal runs of consecutive steady steps."""
    common = [
        number
        for number in trace_set.steps
        if all(trace.step(number) is not None for trace in trace_set.ranks)
    ]
    return [Stretch(run) for run in _consecutive(common)]


def _consecutive(numbers: Sequence[int]) -> list[tuple[int, ...]]:
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return [tuple(run) for run in runs]
