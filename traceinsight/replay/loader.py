"""A data loader with its own processes: it goes on while the job is held up elsewhere.

A step that had to wait for its batch shows when that batch was ready. What delays the job first, a replica
sync for instance, gives the loader time: the wait shrinks by as much, until the loader's queue is full.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from traceinsight.replay.graph import EdgeKind, GraphDraft, NodeKind
from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import EventKind, Int64

_FETCHES = re.compile(r"_MultiProcessingDataLoaderIter\.__next__")
"""A loader without processes of its own works inside the call: that is host time, not waiting."""

WAITED_NS = 1_000_000
"""Taking a batch that is ready from the queue takes less than this."""

HANDED_OVER_NS = 100_000
"""What taking a batch that is ready takes: tens to hundreds of microseconds."""

AHEAD = 2
"""Batches that wait in the queue at most: ``prefetch_factor`` of PyTorch's DataLoader, for its only worker.
With more workers more fit, and a long delay is made up for by more than is assumed here."""


def all_fetches(trace: RankTrace) -> Int64:
    """Events of the main thread that take a batch from such a loader, in order of time."""
    events = trace.recording.events
    found = trace.recording.named(
        trace.recording.of_kind(EventKind.ANNOTATION), lambda name: _FETCHES.search(name) is not None
    )
    found = found[events.lane[found] == trace.steps.main_lane]
    order = np.argsort(events.start_ns[found], kind="stable")
    return np.asarray(found[order], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Fetches:
    """Fetches that waited, in order of time: events, and numbers among all fetches of the rank."""

    events: Int64
    ordinals: Int64

    @classmethod
    def of(cls, trace: RankTrace, window: tuple[int, int]) -> Fetches:
        """Those of the main thread within a window on the rank's own clock."""
        events, found = trace.recording.events, all_fetches(trace)
        inside = (events.start_ns[found] >= window[0]) & (events.end_ns[found] < window[1])
        waited = np.flatnonzero(inside & (events.dur_ns[found] >= WAITED_NS))
        return cls(found[waited], waited)

    def add_ready(self, draft: GraphDraft, origin: Int64, rank: int, ready_ns: Int64) -> Int64:
        """Add the moments at which the batches were ready, on the common clock, each after the one before."""
        ready = draft.add_nodes(NodeKind.HOST, rank, ready_ns)
        draft.add_edges(EdgeKind.ORIGIN, origin[: len(ready)], ready[:1], ready_ns[:1] - draft.origin_ns)
        draft.add_edges(EdgeKind.INPUT, ready[:-1], ready[1:], np.diff(ready_ns))
        return ready

    def add_waits(self, draft: GraphDraft, ready: Int64, returns: Int64, ready_ns: Int64) -> None:
        """Let each fetch wait for its batch, and the loader for room in its queue."""
        draft.add_edges(EdgeKind.INPUT, ready, returns)
        made_ns = np.diff(ready_ns)[AHEAD - 1 :]  # the queue was empty when the loader began with it
        follows = self.ordinals[AHEAD:] - self.ordinals[:-AHEAD] == AHEAD
        draft.add_edges(EdgeKind.INPUT, returns[:-AHEAD][follows], ready[AHEAD:][follows], made_ns[follows])
