"""The partition of every steady step on every rank, and the steps' lengths."""

from __future__ import annotations

from collections.abc import Mapping

from traceinsight.analyses.partition.idle import idle_causes
from traceinsight.base import intervals
from traceinsight.base.intervals import Spans
from traceinsight.diagnosis import CAUSES, Partition, StepTime
from traceinsight.trace.activity import Activity
from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.trace_set import TraceSet


def step_times(trace_set: TraceSet) -> list[StepTime]:
    """CPU and device length of every captured step, dropped ones included (``run.steps`` tells)."""
    return [
        StepTime(
            rank=trace.rank,
            step=step.number,
            cpu_ns=step.cpu_end_ns - step.cpu_start_ns if trace.steps.marked else None,
            device_ns=step.window_ns[1] - step.window_ns[0] if step.device_start_ns is not None else None,
        )
        for trace in trace_set.ranks
        for step in trace.steps.steps
    ]


def partition(trace_set: TraceSet, activity: Mapping[int, Activity]) -> list[Partition]:
    """The six parts of each steady step's window, by rank and step; none for a rank without its device."""
    rows: list[Partition] = []
    for trace in trace_set.ranks:
        if trace.device_recorded:
            rows += _rank_partition(trace, activity[trace.rank], trace_set.steps)
    return rows


def _rank_partition(trace: RankTrace, activity: Activity, numbers: tuple[int, ...]) -> list[Partition]:
    windows = [(number, step.window_ns) for number in numbers if (step := trace.step(number)) is not None]
    if not windows:
        return []
    start, end = min(window[0] for _, window in windows), max(window[1] for _, window in windows)
    exposed = activity.exposed_comm
    parts: dict[str, Spans] = {
        "compute": activity.compute,
        "transfer": intervals.intersect(exposed, activity.transfer),
        "wait": intervals.intersect(exposed, activity.wait),
        "unsplit": intervals.intersect(exposed, activity.unsplit),
        "copy": activity.exposed_copy,
    }
    causes = idle_causes(trace, activity, start, end)
    return [_row(trace.rank, number, window, parts, causes) for number, window in windows]


def _row(
    rank: int, step: int, window: tuple[int, int], parts: Mapping[str, Spans], causes: Mapping[str, Spans]
) -> Partition:
    ns = {name: intervals.measure(intervals.clip(spans, *window)) for name, spans in parts.items()}
    by_cause = {
        cause: duration
        for cause in CAUSES
        if cause in causes and (duration := intervals.measure(intervals.clip(causes[cause], *window)))
    }
    window_ns = window[1] - window[0]
    return Partition(
        rank=rank,
        step=step,
        window_ns=window_ns,
        compute_ns=ns["compute"],
        exposed_comm_transfer_ns=ns["transfer"],
        exposed_comm_wait_ns=ns["wait"],
        exposed_comm_unsplit_ns=ns["unsplit"],
        exposed_copy_ns=ns["copy"],
        idle_ns=window_ns - sum(ns.values()),
        idle_by_cause_ns=by_cause,
    )
