"""What step time would be freed if a group of ranks came with the next rank: an upper bound.

A wait for the group counts for another rank only where it held that rank up: something was queued behind
the collective when it ended, or the host stood in a synchronising call. Where the rank's host had not got
further anyway, the device would have idled just as long. The other rank that gains least bounds the step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceinsight.analyses.stragglers.arrivals import Arrivals
from traceinsight.base import intervals
from traceinsight.base.intervals import Spans
from traceinsight.trace.activity import Activity, synchronising_spans
from traceinsight.trace.collectives import communication_kernels
from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import GPU_WORK, MISSING, Int64
from traceinsight.trace.trace_set import TraceSet

BOUNDING_QUANTILE = 0.1
"""The step is bound by the rank that gains least; with many ranks the lowest tenth stands for it, so that
one rank with a damaged capture does not hide a straggler."""

MAX_LOST_SHARE = 0.1
"""A rank whose own parts in the collectives concerned are lost for more of the time cannot bound the step,
unless that is so for every rank."""

_END_SLACK_NS = 5_000
"""Ends of one collective differ by some microseconds between ranks."""


@dataclass(frozen=True, slots=True)
class _Rank:
    """What is needed of one rank to see whether a collective held it up."""

    offset_ns: int
    compute: Spans
    is_gpu: bool
    start_ns: Int64  # of GPU events that are no communication, ascending
    launch_ns: Int64  # of the same events; MISSING if not recorded
    synchronising: Spans

    def held_ns(self, begin_ns: Int64, end_ns: Int64, released_ns: Int64) -> int:
        """How long the waits [begin, end) held this rank up, given when each collective released it."""
        held = self.held_at(released_ns)
        return intervals.measure(
            intervals.subtract(intervals.union(begin_ns[held], end_ns[held]), self.compute)
        )

    def held_at(self, ends_ns: Int64) -> NDArray[np.bool_]:
        """Whether something waited for each of these ends (own clock)."""
        if not self.is_gpu:
            return ~intervals.contains(self.compute, ends_ns)
        blocked = intervals.contains(self.synchronising, ends_ns)
        if not len(self.start_ns):
            return blocked
        following = np.searchsorted(self.start_ns, ends_ns - _END_SLACK_NS, side="left")
        exists = following < len(self.start_ns)
        launch = self.launch_ns[np.minimum(following, len(self.start_ns) - 1)]
        queued = exists & ((launch == MISSING) | (launch <= ends_ns))
        return np.asarray(blocked | queued)


class FreedTime:
    """Answers :meth:`ceiling_ns` for many groups over the same traces."""

    def __init__(self, trace_set: TraceSet, activity: Mapping[int, Activity]) -> None:
        self._ranks = {
            trace.rank: _rank(trace, activity[trace.rank], trace_set.offset_ns(trace.rank))
            for trace in trace_set.ranks
        }

    def ceiling_ns(
        self, arrivals: Arrivals, group: Sequence[int], held_up: NDArray[np.bool_] | None = None
    ) -> float:
        """Step time freed at best if ``group`` arrived with the last of the other ranks.

        The one that gains least of the ranks ``held_up`` bounds it; by default of all that meet the group.
        """
        after = arrivals.mended(group).latest_ns(arrivals.ranks)
        before = arrivals.latest_ns(arrivals.ranks)
        reached = arrivals.held_up_by(group) if held_up is None else held_up
        lost_ns = np.where(arrivals.lost, (before - after)[:, None], 0.0).sum(axis=0)
        telling = reached & (lost_ns <= MAX_LOST_SHARE * (before - after).sum())
        freed = [
            self._held_ns(arrivals, column, after, before)
            for column in np.flatnonzero(telling if telling.any() else reached).tolist()
        ]
        return float(np.quantile(freed, BOUNDING_QUANTILE, method="lower")) if freed else 0.0

    def _held_ns(
        self, arrivals: Arrivals, column: int, after: NDArray[np.float64], before: NDArray[np.float64]
    ) -> int:
        """How long one rank was held up by what came at ``before`` instead of ``after``."""
        came, released = arrivals.times_ns[:, column], arrivals.ends_ns[:, column]
        begin = np.maximum(after, came)  # it waits from its own arrival on
        waited = (begin < before) & ~np.isnan(came)
        rank = self._ranks[arrivals.ranks[column]]
        shift = arrivals.origin_ns + rank.offset_ns
        return rank.held_ns(*(one[waited].astype(np.int64) + shift for one in (begin, before, released)))


def _rank(trace: RankTrace, activity: Activity, offset_ns: int) -> _Rank:
    recording = trace.recording
    # One collective queued behind another is held up only if the last of them holds up something else.
    gpu = np.setdiff1d(recording.of_kind(*GPU_WORK), communication_kernels(recording), assume_unique=True)
    launch = trace.launch[gpu]
    return _Rank(
        offset_ns=offset_ns,
        compute=activity.compute,
        is_gpu=trace.has_gpu,
        start_ns=recording.events.start_ns[gpu],
        launch_ns=np.where(launch == MISSING, MISSING, recording.events.start_ns[launch]),
        synchronising=synchronising_spans(trace),
    )
