"""Kernels whose recorded duration is impossible.

**The rule.** Work on one GPU stream runs in order. An event that contains the next event of its stream
*whole*, and goes on for more than :data:`TOLERANCE_NS` after that one ended, cannot be right: its end is
set to the start of that next event. Left alone are overlaps in which the next event ends later
(programmatic dependent launch and clock rounding make 1-2 us of these normal) and events of the same launch
(branches of one CUDA graph share correlation and stream and do run side by side).
"""

from __future__ import annotations

import numpy as np

from traceinsight.trace.recording import GPU_WORK, MISSING, EventTable, Int64, Lane

TOLERANCE_NS = 10_000
"""Ends on one stream are known to about 2 us in real traces; five times that is no rounding."""


def clip_overruns(events: EventTable, lanes: tuple[Lane, ...]) -> tuple[Int64, Int64]:
    """The corrected durations, and the indices of the events that were clipped."""
    dur_ns = events.dur_ns.copy()
    gpu = np.flatnonzero(np.isin(events.kind, GPU_WORK))
    clipped: list[int] = []
    lane_of = events.lane[gpu]
    for lane in np.unique(lane_of):
        if lanes[lane].stream is not None:
            clipped += _clip_lane(events, gpu[lane_of == lane], dur_ns)
    return dur_ns, np.array(sorted(clipped), dtype=np.int64)


def _clip_lane(events: EventTable, rows: Int64, dur_ns: Int64) -> list[int]:
    start = events.start_ns[rows]
    end = start + events.dur_ns[rows]
    if len(rows) < 2:
        return []
    suspects = np.flatnonzero(end[:-1] > end[1:] + TOLERANCE_NS)
    clipped = []
    for suspect in suspects.tolist():
        follower = suspect + 1
        same_launch = events.correlation[rows[suspect]] == events.correlation[rows[follower]] != MISSING
        if same_launch or start[follower] == start[suspect]:
            continue
        dur_ns[rows[suspect]] = start[follower] - start[suspect]
        clipped.append(int(rows[suspect]))
    return clipped
