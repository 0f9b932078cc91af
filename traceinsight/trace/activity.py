"""What one rank's device was doing at any time, as sets of time on the rank's own clock.

The device is the GPU; a rank without GPU work is its CPU: its compute threads' operators are compute, the
backend's worker threads (gloo) are communication, and time blocked on a collective is neither. Nor is a long
run of operators that are too short to compute anything (``trace.dispatch``).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traceinsight.base import intervals
from traceinsight.base.intervals import Spans
from traceinsight.base.labels import INPUT_LABEL
from traceinsight.trace.collectives import backend_annotations, communication_kernels
from traceinsight.trace.dispatch import dispatch_spans
from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import MISSING, EventKind, Int64
from traceinsight.trace.trace_set import MatchedCollective, TraceSet

_BLOCKED_OPERATOR = re.compile(r"^c10d::|_Wait$|_ReqBackward$|^## .*wait\(\)|Awaitable|^\[output_dist_wait\]")
"""Operators and annotations that block until a collective is done."""


@dataclass(frozen=True, slots=True)
class Activity:
    """Sets of time of one rank. ``transfer``, ``wait`` and ``unsplit`` are disjoint and make up ``comm``.

    Where collectives overlap, a moment counts as transfer if any of them transfers, else as wait if any is
    known to wait, else as unsplit.
    """

    compute: Spans
    comm: Spans
    transfer: Spans
    wait: Spans
    unsplit: Spans
    copy: Spans

    @property
    def exposed_comm(self) -> Spans:
        """Communication while nothing computes."""
        return intervals.subtract(self.comm, self.compute)

    @property
    def exposed_copy(self) -> Spans:
        """Copies while nothing computes or communicates."""
        return intervals.subtract(intervals.subtract(self.copy, self.compute), self.comm)

    @property
    def busy(self) -> Spans:
        """Any device activity."""
        return intervals.add(intervals.add(self.compute, self.comm), self.copy)


def activities(trace_set: TraceSet) -> dict[int, Activity]:
    """The activity of every rank."""
    parts: dict[int, list[tuple[MatchedCollective, int]]] = defaultdict(list)
    for collective in trace_set.collectives:
        for position, rank in enumerate(collective.ranks):
            parts[rank].append((collective, position))
    return {
        trace.rank: _activity(trace, parts[trace.rank], trace_set.offset_ns(trace.rank))
        for trace in trace_set.ranks
    }


def _activity(trace: RankTrace, parts: Sequence[tuple[MatchedCollective, int]], offset_ns: int) -> Activity:
    pieces = split_by_arrival(parts, offset_ns)
    transfer = pieces["transfer"]
    wait = intervals.subtract(pieces["wait"], transfer)
    unsplit = intervals.subtract(intervals.subtract(pieces["unsplit"], transfer), wait)
    comm = intervals.add(intervals.add(transfer, wait), unsplit)
    if trace.has_gpu:
        compute, copy = _gpu_compute(trace), event_spans(trace, trace.recording.of_kind(*_COPIES))
    else:
        compute, copy = _cpu_compute(trace), intervals.EMPTY
    return Activity(compute, comm, transfer, wait, unsplit, copy)


_COPIES = (EventKind.MEMCPY, EventKind.MEMSET)


def split_by_arrival(parts: Sequence[tuple[MatchedCollective, int]], offset_ns: int) -> Mapping[str, Spans]:
    """``transfer``, ``wait`` and ``unsplit`` time of one rank's part in each collective; its own clock.

    Before the last captured arrival the rank certainly waits. After it, it transfers if every member was
    captured; otherwise an absent member may still be awaited, and the two cannot be told apart.
    """
    bounds: dict[str, list[tuple[int, int]]] = {"transfer": [], "wait": [], "unsplit": []}
    for collective, position in parts:
        member = collective.members[position]
        released = member.start_ns
        if collective.synchronising:
            released = min(max(collective.last_arrival_ns + offset_ns, member.start_ns), member.end_ns)
            bounds["wait"].append((member.start_ns, released))
        rest = "transfer" if collective.complete else "unsplit"
        bounds[rest].append((released, member.end_ns))
    return {name: _union(pairs) for name, pairs in bounds.items()}


def _union(pairs: Sequence[tuple[int, int]]) -> Spans:
    if not pairs:
        return intervals.EMPTY
    array = np.array(pairs, dtype=np.int64)
    return intervals.union(array[:, 0], array[:, 1])


def event_spans(trace: RankTrace, events: Int64) -> Spans:
    """The time that at least one of these events of a rank covers, on its own clock."""
    table = trace.recording.events
    return intervals.union(table.start_ns[events], table.end_ns[events])


def _gpu_compute(trace: RankTrace) -> Spans:
    kernels = trace.recording.of_kind(EventKind.KERNEL)
    communication = communication_kernels(trace.recording)
    return event_spans(trace, np.setdiff1d(kernels, communication, assume_unique=True))


def input_spans(trace: RankTrace) -> Spans:
    """When the main thread fetched the next batch."""
    annotations = trace.recording.of_kind(EventKind.ANNOTATION)
    labelled = trace.recording.named(annotations, lambda name: INPUT_LABEL.search(name) is not None)
    return event_spans(trace, labelled[trace.recording.events.lane[labelled] == trace.steps.main_lane])


_SYNCHRONISES = re.compile(
    r"Synchronize|^(cuda|hip)Memcpy(?!.*Async)|^hipMemcpyWithStream|^cuMemcpy(?!.*Async)"
)


def synchronising_spans(trace: RankTrace) -> Spans:
    """When a thread that launches device work stood in a call that waits for the device.

    Only those threads: a loader that copies on its own must not count.
    """
    recording = trace.recording
    lanes = recording.events.lane
    calls = recording.named(
        recording.of_kind(EventKind.RUNTIME), lambda name: _SYNCHRONISES.search(name) is not None
    )
    launching = np.unique(lanes[trace.launch[trace.launch != MISSING]])
    return event_spans(trace, calls[np.isin(lanes[calls], launching)])


def blocked_spans(trace: RankTrace) -> Spans:
    """When a thread issued or awaited a collective instead of computing (CPU ranks)."""
    chosen = trace.recording.of_kind(EventKind.CPU_OP, EventKind.ANNOTATION)
    blocked = trace.recording.named(chosen, lambda name: _BLOCKED_OPERATOR.search(name) is not None)
    return event_spans(trace, blocked)


def _cpu_compute(trace: RankTrace) -> Spans:
    recording = trace.recording
    workers = np.unique(recording.events.lane[backend_annotations(recording)])
    operators = recording.of_kind(EventKind.CPU_OP)
    lanes = recording.events.lane[operators]
    main = lanes == trace.steps.main_lane
    beside = event_spans(trace, operators[~np.isin(lanes, workers) & ~main])
    own = intervals.subtract(event_spans(trace, operators[main]), dispatch_spans(trace))
    computing = intervals.subtract(intervals.add(own, beside), blocked_spans(trace))
    return intervals.subtract(computing, input_spans(trace))
