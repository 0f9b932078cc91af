"""Why the device was idle, gap by gap.

A gap ends when the next GPU event starts. Until that event's launch call began the host is the reason, and
what the host did meanwhile names it; from then on it is launch latency, and beyond that a dependency: the
work was queued and had to wait for something else.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceinsight.base import intervals
from traceinsight.base.intervals import Spans
from traceinsight.base.labels import STEP_LABEL
from traceinsight.trace.activity import Activity, blocked_spans, event_spans, input_spans, synchronising_spans
from traceinsight.trace.dispatch import dispatch_spans
from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import GPU_WORK, MISSING, EventKind, Int64

LAUNCH_LATENCY_NS = 20_000
"""A kernel normally starts within this time of its launch call (5-10 us on current GPUs, more under a
profiler); what exceeds it is waiting for other work."""

SYNC_TAIL_NS = 10_000
"""A synchronisation that returned at most this long before the GPU ran dry is the reason it did."""

_ALLOCATES = re.compile(r"^(cuda|hip)(Malloc|Free|HostAlloc|HostRegister)|^cuMem(Alloc|Free|Create|Map)")


def idle_causes(trace: RankTrace, activity: Activity, start_ns: int, end_ns: int) -> dict[str, Spans]:
    """The idle time of one rank between two moments, as disjoint sets by cause."""
    idle = intervals.subtract(intervals.single(start_ns, end_ns), activity.busy)
    causes = _gpu_causes(trace, idle) if trace.has_gpu else _cpu_causes(trace, idle)
    return {cause: spans for cause, spans in causes.items() if len(spans)}


def _cpu_causes(trace: RankTrace, idle: Spans) -> dict[str, Spans]:
    """A CPU rank idles while it loads, while it awaits a collective that no thread runs, or in Python.

    Time in Python is known by an annotation around it, or by a run of tiny operators; otherwise nothing is
    known.
    """
    waiting_for_input = intervals.intersect(idle, input_spans(trace))
    rest = intervals.subtract(idle, waiting_for_input)
    blocked = intervals.intersect(rest, blocked_spans(trace))
    rest = intervals.subtract(rest, blocked)
    host = intervals.intersect(rest, intervals.add(_annotated_spans(trace), dispatch_spans(trace)))
    return {
        "input": waiting_for_input,
        "dependency": blocked,
        "host": host,
        "unattributed": intervals.subtract(rest, host),
    }


def _annotated_spans(trace: RankTrace) -> Spans:
    recording = trace.recording
    chosen = recording.named(
        recording.of_kind(EventKind.ANNOTATION), lambda name: STEP_LABEL.match(name) is None
    )
    chosen = chosen[recording.events.lane[chosen] == trace.steps.main_lane]
    return event_spans(trace, chosen)


@dataclass(frozen=True, slots=True)
class _Gaps:
    """Idle intervals; ``launch_ns`` is when the host began to launch what ended each, MISSING if unknown."""

    start_ns: Int64
    end_ns: Int64
    launch_ns: Int64

    def part(self, start_ns: Int64, end_ns: Int64) -> Spans:
        """The piece of every gap between two moments, as one set."""
        return intervals.union(
            np.clip(start_ns, self.start_ns, self.end_ns), np.clip(end_ns, self.start_ns, self.end_ns)
        )


def _gpu_causes(trace: RankTrace, idle: Spans) -> dict[str, Spans]:
    gaps = _gaps(trace, idle)
    known = gaps.launch_ns != MISSING
    unattributed = intervals.union(gaps.start_ns[~known], gaps.end_ns[~known])
    gaps = _Gaps(gaps.start_ns[known], gaps.end_ns[known], gaps.launch_ns[known])
    by_host = gaps.part(gaps.start_ns, gaps.launch_ns)
    latency = gaps.part(gaps.launch_ns, gaps.launch_ns + LAUNCH_LATENCY_NS)
    dependency = gaps.part(gaps.launch_ns + LAUNCH_LATENCY_NS, gaps.end_ns)
    causes = _host_causes(trace, gaps, by_host)
    return {
        **causes,
        "launch_latency": latency,
        "dependency": dependency,
        "unattributed": unattributed,
    }


def _gaps(trace: RankTrace, idle: Spans) -> _Gaps:
    """The launch that ended each gap; nothing is known of a gap after the last recorded event."""
    events = trace.recording.events
    gpu = trace.recording.of_kind(*GPU_WORK)
    position = np.searchsorted(events.start_ns[gpu], idle[:, 1], side="left")
    after_all = position >= len(gpu)
    following = gpu[np.minimum(position, len(gpu) - 1)]
    launch = trace.launch[following]
    # Inside a CUDA graph one launch stands for many kernels, and profilers do not record all of them: a gap
    # there may be unrecorded work, so nothing is said about it.
    graphs = trace.recording.named(
        trace.recording.of_kind(EventKind.RUNTIME), lambda name: "GraphLaunch" in name
    )
    in_graph = np.isin(launch, graphs) & (events.start_ns[launch] < idle[:, 0])
    launch_ns = np.where((launch != MISSING) & ~in_graph, events.start_ns[launch], MISSING)
    return _Gaps(idle[:, 0], idle[:, 1], np.where(after_all, MISSING, launch_ns))


def _host_causes(trace: RankTrace, gaps: _Gaps, by_host: Spans) -> dict[str, Spans]:
    waiting_for_input = intervals.intersect(by_host, input_spans(trace))
    rest = intervals.subtract(by_host, waiting_for_input)
    allocating = intervals.intersect(rest, _runtime_spans(trace, _ALLOCATES))
    rest = intervals.subtract(rest, allocating)
    synchronising = intervals.intersect(rest, _drained_by_sync(trace, gaps))
    return {
        "input": waiting_for_input,
        "allocator": allocating,
        "host_sync": synchronising,
        "host": intervals.subtract(rest, synchronising),
    }


def _drained_by_sync(trace: RankTrace, gaps: _Gaps) -> Spans:
    """Gaps that opened because the host stood in a synchronising call instead of launching ahead.

    The whole host part of such a gap counts, not only the call itself: after the call the queue is empty
    and every launch comes late.
    """
    calls = synchronising_spans(trace)
    stretched = intervals.union(calls[:, 0], calls[:, 1] + SYNC_TAIL_NS)
    drained: NDArray[np.bool_] = intervals.contains(stretched, gaps.start_ns)
    during = intervals.intersect(gaps.part(gaps.start_ns, gaps.launch_ns), calls)
    return intervals.add(intervals.union(gaps.start_ns[drained], gaps.end_ns[drained]), during)


def _runtime_spans(trace: RankTrace, wanted: re.Pattern[str]) -> Spans:
    """Calls of this kind on the threads that launch work (a loader's own copies must not count)."""
    recording = trace.recording
    events = recording.events
    calls = recording.named(
        recording.of_kind(EventKind.RUNTIME), lambda name: wanted.search(name) is not None
    )
    launching = np.unique(events.lane[trace.launch[trace.launch != MISSING]])
    chosen = calls[np.isin(events.lane[calls], launching)]
    return event_spans(trace, chosen)
