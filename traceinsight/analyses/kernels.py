"""Device time by kernel family; on CPU ranks by operator family."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np

from traceinsight.base.kernel_families import COPY, family_of
from traceinsight.diagnosis import KernelFamilyRow
from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import EventKind, Int64
from traceinsight.trace.trace_set import TraceSet

TOP_KERNELS = 3
_MAX_NAME = 120


def kernel_families(trace_set: TraceSet) -> list[KernelFamilyRow]:
    """Summed durations per steady step, mean over ranks, largest family first. GPU ranks only."""
    busy: dict[str, int] = defaultdict(int)
    count: dict[str, int] = defaultdict(int)
    names: dict[str, Counter[str]] = defaultdict(Counter)
    traces = [trace for trace in trace_set.ranks if trace.has_gpu]
    for trace in traces:
        for name, duration, events in _by_name(trace, _steady_events(trace, trace_set.steps)):
            family = family_of(name)
            busy[family] += duration
            count[family] += events
            names[family][name] += duration
        copies = _steady_events(trace, trace_set.steps, EventKind.MEMCPY, EventKind.MEMSET)
        for name, duration, events in _by_name(trace, copies):
            busy[COPY] += duration
            count[COPY] += events
            names[COPY][name] += duration
    samples = len(traces) * len(trace_set.steps)
    total = sum(busy.values())
    return [
        KernelFamilyRow(
            family=family,
            busy_ns=round(busy[family] / samples),
            share=busy[family] / total if total else 0.0,
            count_per_step=count[family] / samples,
            top_kernels=[name[:_MAX_NAME] for name, _ in names[family].most_common(TOP_KERNELS)],
        )
        for family in sorted(busy, key=lambda family: (-busy[family], family))
    ]


def _steady_events(trace: RankTrace, numbers: tuple[int, ...], *kinds: EventKind) -> Int64:
    chosen = trace.recording.of_kind(*(kinds or (EventKind.KERNEL,)))
    steady = [at for at, step in enumerate(trace.steps.steps) if step.number in numbers]
    return chosen[np.isin(trace.steps.of_event[chosen], steady)]


def _by_name(trace: RankTrace, events: Int64) -> list[tuple[str, int, int]]:
    """(name, summed duration in ns, count) of the given events."""
    names = trace.recording.events.name[events]
    unique, position = np.unique(names, return_inverse=True)
    duration = np.zeros(len(unique), dtype=np.int64)
    np.add.at(duration, position, trace.recording.events.dur_ns[events])
    counts = np.bincount(position, minlength=len(unique))
    return [
        (trace.recording.strings[name], int(total), int(number))
        for name, total, number in zip(unique.tolist(), duration, counts, strict=True)
    ]
