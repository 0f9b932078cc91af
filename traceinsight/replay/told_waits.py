"""Waits across the streams of one device as CUDA's synchronisation events tell them.

Kineto records these with ``enable_cuda_sync_events`` only: which stream waits, for which other one, and by
which call the event it waits for was recorded there. Where they are, nothing has to be inferred.
"""

from __future__ import annotations

import numpy as np

from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import MISSING, EventKind, Int64


def told_waits(trace: RankTrace, gpu: Int64) -> tuple[Int64, Int64]:
    """(source, target): positions in ``gpu``, each pair once; each target starts after its source's end.

    What is launched next on the waiting stream waits for what was launched last on the other one before the
    event was recorded. Waits for events from before the recording are left out.

    Args:
        trace: The rank.
        gpu: Its GPU events in order of start, shape (n,).

    """
    recording, launch = trace.recording, trace.launch[gpu]
    begun_ns = _calls(trace)
    streams = np.array([MISSING if lane.stream is None else lane.stream for lane in recording.lanes])
    stream = streams[recording.events.lane[gpu]]
    launched = np.flatnonzero(launch != MISSING)
    launched = launched[np.argsort(recording.events.start_ns[launch[launched]], kind="stable")]
    queues = {number: launched[stream[launched] == number] for number in np.unique(stream).tolist()}
    launch_ns = {number: recording.events.start_ns[launch[queue]] for number, queue in queues.items()}
    pairs = set()
    for call, wait in recording.stream_waits.items():
        known = call in begun_ns and wait.record in begun_ns
        if not known or wait.stream not in queues or wait.waited_stream not in queues:
            continue
        after = int(np.searchsorted(launch_ns[wait.stream], begun_ns[call], side="right"))
        before = int(np.searchsorted(launch_ns[wait.waited_stream], begun_ns[wait.record])) - 1
        if after < len(queues[wait.stream]) and before >= 0:
            pairs.add((int(queues[wait.waited_stream][before]), int(queues[wait.stream][after])))
    found = np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)
    return found[:, 0], found[:, 1]


def _calls(trace: RankTrace) -> dict[int, int]:
    """Correlation of each runtime call -> its begin on the rank's own clock."""
    events, runtime = trace.recording.events, trace.recording.of_kind(EventKind.RUNTIME)
    return dict(zip(events.correlation[runtime].tolist(), events.start_ns[runtime].tolist(), strict=True))
