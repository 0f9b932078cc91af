"""Which runtime call launched which GPU event."""

from __future__ import annotations

import numpy as np

from traceinsight.trace.recording import GPU_WORK, MISSING, EventKind, Int64, Recording


def launch_of_gpu_events(recording: Recording) -> Int64:
    """For every event: index of the runtime call that launched it, ``MISSING`` if none was recorded.

    Shape (n_events,). Several GPU events may share one launch (CUDA graphs). CPU events have none.
    """
    events = recording.events
    launch = np.full(len(events), MISSING, dtype=np.int64)
    runtime = recording.of_kind(EventKind.RUNTIME)
    runtime = runtime[events.correlation[runtime] != MISSING]
    gpu = recording.of_kind(*GPU_WORK)
    if not len(runtime) or not len(gpu):
        return launch
    order = runtime[np.argsort(events.correlation[runtime], kind="stable")]
    keys = events.correlation[order]
    wanted = events.correlation[gpu]
    position = np.minimum(np.searchsorted(keys, wanted, side="left"), len(keys) - 1)
    found = (keys[position] == wanted) & (wanted != MISSING)
    launch[gpu[found]] = order[position[found]]
    return launch
