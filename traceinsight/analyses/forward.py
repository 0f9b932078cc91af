"""How much of the forward pass is communication.

Forward is rebuilt from launch correlation: the device work whose launch lies inside the forward annotation
of the main thread. Its span runs from the first start to the last end of that work.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from traceinsight.base import intervals
from traceinsight.base.intervals import Spans
from traceinsight.base.labels import FORWARD_LABELS, without_batch_index
from traceinsight.diagnosis import ForwardShare, LargestCollective
from traceinsight.trace.activity import Activity
from traceinsight.trace.rank_trace import RankCollective, RankTrace
from traceinsight.trace.recording import MISSING, EventKind
from traceinsight.trace.steps import Step
from traceinsight.trace.trace_set import TraceSet


@dataclass(frozen=True, slots=True)
class _HostForward:
    """When the main thread ran forward, and how that was found."""

    spans: Spans
    source: str


def forward_shares(trace_set: TraceSet, activity: Mapping[int, Activity]) -> list[ForwardShare]:
    """One row per rank and steady step; a rank whose forward cannot be found has none."""
    rows = []
    for trace in [trace for trace in trace_set.ranks if trace.device_recorded]:
        host = _Host(trace)
        for number in trace_set.steps:
            step = trace.step(number)
            row = None if step is None else _share(trace, activity[trace.rank], step, host.forward(step))
            if row is not None:
                rows.append(row)
    return rows


def _share(
    trace: RankTrace, activity: Activity, step: Step, host: _HostForward | None
) -> ForwardShare | None:
    if host is None:
        return None
    span = _device_span(trace, host.spans)
    if span is None:
        return None
    own = [part for part in trace.collectives if part.lane == trace.steps.main_lane]
    launches = np.array([part.launch_ns for part in own], dtype=np.int64)
    parts = [own[position] for position in np.flatnonzero(intervals.contains(host.spans, launches)).tolist()]
    comm = intervals.clip(_spans_of(parts), *span)
    exposed = intervals.subtract(comm, activity.compute)
    return ForwardShare(
        rank=trace.rank,
        step=step.number,
        span_ns=span[1] - span[0],
        comm_ns=intervals.measure(comm),
        exposed_comm_ns=intervals.measure(exposed),
        exposed_transfer_ns=intervals.measure(intervals.intersect(exposed, activity.transfer)),
        exposed_wait_ns=intervals.measure(intervals.intersect(exposed, activity.wait)),
        exposed_unsplit_ns=intervals.measure(intervals.intersect(exposed, activity.unsplit)),
        largest_collective=_largest(parts, span),
        source=host.source,
    )


class _Host:
    """Where one rank's main thread ran forward: asked once per step, so the marks are found only once."""

    def __init__(self, trace: RankTrace) -> None:
        recording = trace.recording
        events = recording.events
        annotations = recording.of_kind(EventKind.ANNOTATION)
        annotations = annotations[events.lane[annotations] == trace.steps.main_lane]
        self._events = events
        self._marks = {
            label: recording.named(annotations, functools.partial(_is_labelled, label))
            for label in FORWARD_LABELS
        }
        backward = recording.named(recording.of_kind(EventKind.CPU_OP, EventKind.ANNOTATION), _is_backward)
        self._backward_ns = events.start_ns[backward]

    def forward(self, step: Step) -> _HostForward | None:
        """The forward annotation, else everything the main thread did before the first backward operator."""
        for label, marks in self._marks.items():
            starts = self._events.start_ns[marks]
            chosen = marks[(starts >= step.cpu_start_ns) & (starts < step.cpu_end_ns)]
            if len(chosen):
                spans = intervals.union(self._events.start_ns[chosen], self._events.end_ns[chosen])
                return _HostForward(spans, label)
        first = int(np.searchsorted(self._backward_ns, step.cpu_start_ns))
        if first == len(self._backward_ns) or self._backward_ns[first] >= step.cpu_end_ns:
            return None
        before = intervals.single(step.cpu_start_ns, int(self._backward_ns[first]))
        return _HostForward(before, "everything before backward")


def _is_labelled(label: str, name: str) -> bool:
    return without_batch_index(name) == label


def _is_backward(name: str) -> bool:
    return name == "## backward ##" or name.startswith("autograd::engine::evaluate_function")


def _device_span(trace: RankTrace, host: Spans) -> tuple[int, int] | None:
    events = trace.recording.events
    if not trace.has_gpu:
        return int(host[0, 0]), int(host[-1, 1])
    launched = np.flatnonzero(trace.launch != MISSING)
    launch = trace.launch[launched]
    inside = intervals.contains(host, events.start_ns[launch]) & (
        events.lane[launch] == trace.steps.main_lane
    )
    chosen = launched[inside]
    if not len(chosen):
        return None
    return int(events.start_ns[chosen].min()), int(events.end_ns[chosen].max())


def _spans_of(parts: list[RankCollective]) -> Spans:
    bounds = np.array([(part.start_ns, part.end_ns) for part in parts], dtype=np.int64).reshape(-1, 2)
    return intervals.union(bounds[:, 0], bounds[:, 1])


def _largest(parts: list[RankCollective], span: tuple[int, int]) -> LargestCollective | None:
    def inside(part: RankCollective) -> int:
        return max(0, min(part.end_ns, span[1]) - max(part.start_ns, span[0]))

    if not parts or span[1] <= span[0]:
        return None
    largest = max(parts, key=lambda part: (inside(part), part.launch_ns))
    return LargestCollective(
        name=largest.label or largest.operation, share=inside(largest) / (span[1] - span[0])
    )
