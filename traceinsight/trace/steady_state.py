"""Which captured steps stand for the job, and why the others do not."""

from __future__ import annotations

from collections.abc import Sequence

from traceinsight.base.notes import DataNote
from traceinsight.base.statistics import median
from traceinsight.trace.rank_trace import CLEAN_LOST_SHARE, RankTrace
from traceinsight.trace.trace_set import DroppedStepNote

SLOW_STEP_FACTOR = 2.0
"""A step longer than this times the median step is an outlier (checkpoint, evaluation, profiler start)."""

FIRST_STEP_FACTOR = 1.5
"""The first captured step often pays for the profiler's start: dropped from this ratio to the later ones."""


def steady_steps(
    traces: Sequence[RankTrace],
) -> tuple[tuple[int, ...], tuple[DroppedStepNote, ...], tuple[DataNote, ...]]:
    """The step numbers to analyse, the dropped ones with reasons, and notes on steps that had to stay."""
    usable = [trace for trace in traces if trace.device_recorded] or traces
    durations = _durations_ns(usable)
    dropped = _outliers(durations)
    for number, share in _lost_shares(usable).items():
        if share > CLEAN_LOST_SHARE and number not in dropped:
            dropped[number] = f"{share:.0%} of its launches have no GPU event (the profiler lost them)"
    steps = tuple(number for number in durations if number not in dropped)
    notes: list[DataNote] = []
    if not steps and durations:
        dropped = _outliers(durations)
        steps = tuple(number for number in durations if number not in dropped)
        which = "those of usual length" if dropped else "all"
        message = f"Every captured step lost kernels; {which} are analysed anyway."
        notes.append(DataNote("warning", "no-clean-step", message))
    drops = tuple(DroppedStepNote(number, reason) for number, reason in sorted(dropped.items()))
    return steps, drops, tuple(notes)


def _durations_ns(traces: Sequence[RankTrace]) -> dict[int, float]:
    """Step number -> the longest of its windows over the ranks, in order of time.

    The longest, because a step is over for the job when its last rank is done.
    """
    found: dict[int, list[int]] = {}
    for trace in traces:
        for step in trace.steps.steps:
            start, end = step.window_ns
            found.setdefault(step.number, []).append(end - start)
    return {number: float(max(found[number])) for number in sorted(found)}


def _outliers(durations: dict[int, float]) -> dict[int, str]:
    dropped: dict[int, str] = {}
    if len(durations) < 2:
        return dropped
    typical = median(list(durations.values()))
    for number, duration in durations.items():
        if duration > SLOW_STEP_FACTOR * typical:
            dropped[number] = f"{duration / 1e6:.0f} ms against a median step of {typical / 1e6:.0f} ms"
    first, *later = durations
    rest = median([durations[number] for number in later])
    if first not in dropped and durations[first] > FIRST_STEP_FACTOR * rest:
        dropped[first] = (
            f"first captured step: {durations[first] / 1e6:.0f} ms against {rest / 1e6:.0f} ms later"
        )
    return dropped


def _lost_shares(traces: Sequence[RankTrace]) -> dict[int, float]:
    """Per step number: the worst rank's share of lost work."""
    worst: dict[int, float] = {}
    for trace in traces:
        for step, share in zip(trace.steps.steps, trace.lost_shares, strict=True):
            worst[step.number] = max(share, worst.get(step.number, 0.0))
    return dict(sorted(worst.items()))
