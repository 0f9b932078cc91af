"""Kernels that wait for room on the device: a large kernel of another stream holds all multiprocessors.

A kernel's blocks are not interrupted. What becomes ready meanwhile on another stream starts when the last
wave of blocks drains, a little before the large kernel ends; no call in the trace says so.
"""

from __future__ import annotations

import numpy as np

from traceinsight.replay.graph import EdgeKind, GraphDraft
from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import MISSING, EventKind, Int64

DRAIN_SHARE = 0.2
"""A wait for room ends within this last share of the kernel that held the device: its last wave, if it has at
least five. A wait that ends earlier had another reason."""

LARGE_NS = 100_000
"""A kernel that runs for less holds nobody up for long."""

WAITED_NS = 50_000
"""A start that is at most this late needs no explanation beside the launch latency."""


def add_room(draft: GraphDraft, trace: RankTrace, gpu: Int64, starts: Int64, ends: Int64) -> None:
    """Let kernels that started late wait for the large kernel in whose last wave they started.

    It must have been running when they became ready, which is after their launch and the work before them on
    their stream.

    Args:
        draft: Gets the edges.
        trace: The rank.
        gpu: Its GPU events in order of start, shape (n,).
        starts: Node at which each of them starts, shape (n,).
        ends: Node at whose end each is over; another than in ``starts`` for collectives, shape (n,).

    """
    events = trace.recording.events
    begin_ns, end_ns, lanes = events.start_ns[gpu], events.end_ns[gpu], events.lane[gpu]
    kernel = events.kind[gpu] == int(EventKind.KERNEL)
    ready_ns = _ready_ns(trace, gpu)
    waited = kernel & (ready_ns != MISSING) & (begin_ns - ready_ns > WAITED_NS)
    large = kernel & (starts == ends) & (end_ns - begin_ns >= LARGE_NS)
    for lane in np.unique(lanes[large]).tolist():
        holders = np.flatnonzero(large & (lanes == lane))
        late = np.flatnonzero(waited & (lanes != lane))
        position = np.searchsorted(begin_ns[holders], begin_ns[late], side="left") - 1
        late, holder = late[position >= 0], holders[position[position >= 0]]
        rest_ns = end_ns[holder] - begin_ns[late]
        held = (
            (begin_ns[holder] <= ready_ns[late] + WAITED_NS)
            & (rest_ns >= 0)
            & (rest_ns <= DRAIN_SHARE * (end_ns[holder] - begin_ns[holder]))
        )
        draft.add_edges(
            EdgeKind.DEPENDENCY, ends[holder[held]], starts[late[held]], -rest_ns[held], after_end=True
        )


def _ready_ns(trace: RankTrace, gpu: Int64) -> Int64:
    """When the launch and the work before it on its stream would let each event start; shape of ``gpu``."""
    events = trace.recording.events
    launch = trace.launch[gpu]
    ready = np.where(launch == MISSING, MISSING, events.start_ns[launch])
    for lane in np.unique(events.lane[gpu]).tolist():
        on_stream = np.flatnonzero(events.lane[gpu] == lane)
        before, after = on_stream[:-1], on_stream[1:]
        launched = ready[after] != MISSING
        ready[after[launched]] = np.maximum(ready[after[launched]], events.end_ns[gpu[before[launched]]])
    return ready
