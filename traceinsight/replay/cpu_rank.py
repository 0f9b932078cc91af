"""One CPU (gloo) rank in the graph: the main thread computes, queues collectives, and waits for them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceinsight.base import intervals
from traceinsight.replay.graph import EdgeKind, GraphDraft, NodeKind
from traceinsight.replay.parts import Added, Part
from traceinsight.replay.stretch import Stretch
from traceinsight.trace.activity import Activity
from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import Int64


def add_cpu_rank(
    draft: GraphDraft,
    origin: Int64,
    trace: RankTrace,
    activity: Activity,
    stretch: Stretch,
    offset_ns: int,
    parts: Sequence[Part],
) -> Added:
    """Add one rank's nodes and edges.

    The main thread is a chain of moments: where it queues a collective, and where its waits begin and end.
    A wait is time without compute in which a collective of this rank ends; it lasts until the last of them
    has ended, and holds the host's own work besides.
    """
    window = stretch.host_window_ns(trace)
    queued = np.array([part.launch_ns for part in parts], dtype=np.int64)
    idle = intervals.subtract(intervals.single(*window), activity.compute)
    waits = _waits(_cut(idle, queued), parts, offset_ns)
    bounds = np.array(waits, dtype=np.int64).reshape(-1, 3)
    moments = np.concatenate((queued, bounds[:, 0], bounds[:, 1], window))
    own_work = np.full(len(moments), -1, dtype=np.int64)
    own_work[len(queued) + len(bounds) : len(queued) + 2 * len(bounds)] = _own_work_ns(bounds, activity)
    # At equal times a wait ends, then the next collective is queued, then the next wait begins.
    turn = np.repeat([1, 2, 0, 0], [len(queued), len(bounds), len(bounds), 2])
    order = np.lexsort((turn, moments))
    chain = draft.add_nodes(NodeKind.HOST, trace.rank, moments[order] - offset_ns)
    nodes = np.empty(len(moments), dtype=np.int64)
    nodes[order] = chain
    _add_chain(draft, moments[order], own_work[order], chain)
    draft.add_edges(
        EdgeKind.ORIGIN, origin, chain[:1], float(moments[order][0] - offset_ns - draft.origin_ns)
    )
    added = _add_parts(draft, trace, parts, nodes[: len(parts)], offset_ns)
    closing = nodes[len(queued) + len(bounds) : len(queued) + 2 * len(bounds)]
    awaited = bounds[:, 2]
    tails = [bounds[at, 1] - offset_ns - parts[part].end_ns for at, part in enumerate(awaited.tolist())]
    draft.add_edges(
        EdgeKind.SYNC,
        added.transfers[awaited],
        closing,
        np.array(tails, dtype=np.float64),
        after_end=True,
    )
    return added


def _cut(idle: intervals.Spans, at_ns: Int64) -> intervals.Spans:
    """The same time in pieces that also end where a collective is queued: one wait may follow another."""
    inside = np.sort(at_ns[intervals.contains(idle, at_ns)])
    starts = np.sort(np.concatenate((idle[:, 0], inside)))
    ends = np.sort(np.concatenate((idle[:, 1], inside)))
    return np.column_stack((starts, ends))


WAKE_NS = 500_000
"""By how much a worker's annotation may outlast the wait for it, on a busy machine."""


def _waits(idle: intervals.Spans, parts: Sequence[Part], offset_ns: int) -> list[tuple[int, int, int]]:
    """(begin, end, position of the awaited part) of each wait, on the rank's clock.

    The awaited part is the last to end in the idle time. Its end may be recorded a little after the main
    thread has gone on: the worker wakes it first and closes its annotation then. What is queued only
    afterwards is not what was awaited.
    """
    found = []
    queued = np.array([part.launch_ns for part in parts], dtype=np.int64)
    ends = np.array([part.end_ns + offset_ns for part in parts], dtype=np.int64)
    for begin, end in idle.tolist():
        inside = np.flatnonzero((ends > begin) & (ends <= end + WAKE_NS) & (queued < end))
        if len(inside):
            last = int(inside[ends[inside].argmax()])
            found.append((begin, end, last))
    return found


def _own_work_ns(bounds: Int64, activity: Activity) -> Int64:
    """What of each wait no collective covers: the host's own work, which stays when waiting ends."""
    covered = intervals.covered_before(activity.comm, bounds[:, 1]) - intervals.covered_before(
        activity.comm, bounds[:, 0]
    )
    return np.asarray(bounds[:, 1] - bounds[:, 0] - covered, dtype=np.int64)


def _add_chain(draft: GraphDraft, moments: Int64, own_work: Int64, chain: Int64) -> None:
    """Fixed time between moments, except up to the end of a wait: there only the host's own work is."""
    gaps = np.diff(moments)
    closes = own_work[1:] >= 0
    draft.add_edges(
        EdgeKind.HOST_TIME, chain[:-1], chain[1:], np.where(closes, np.minimum(gaps, own_work[1:]), gaps)
    )


def _add_parts(
    draft: GraphDraft, trace: RankTrace, parts: Sequence[Part], queued: Int64, offset_ns: int
) -> Added:
    """A worker thread takes each collective up when it was queued; then it meets the other ranks."""
    collective = np.array([part.collective for part in parts], dtype=np.int64)
    event = np.array([part.event for part in parts], dtype=np.int64)
    step = np.array([_step_of(trace, part) for part in parts], dtype=np.int64)
    arrival = np.array([part.arrival_ns for part in parts], dtype=np.int64)
    met = np.array([part.met_ns for part in parts], dtype=np.int64)
    end = np.array([part.end_ns for part in parts], dtype=np.int64)
    launch = np.array([part.launch_ns for part in parts], dtype=np.int64)
    arrivals = draft.add_nodes(
        NodeKind.ARRIVAL, trace.rank, arrival, event=event, step=step, collective=collective
    )
    transfers = draft.add_nodes(
        NodeKind.TRANSFER,
        trace.rank,
        met,
        event=event,
        step=step,
        collective=collective,
        duration_ns=end - met,
    )
    lag = np.clip(arrival + offset_ns - launch, 0, None)
    draft.add_edges(EdgeKind.LAUNCH, queued, arrivals, lag)
    return Added(arrivals, transfers)


def _step_of(trace: RankTrace, part: Part) -> int:
    return trace.steps.steps[int(trace.steps.of_event[part.event])].number
