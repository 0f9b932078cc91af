"""Why a group is late: what its device did more of than the other ranks' while they waited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from traceinsight.diagnosis import Partition

# What a late rank spends longer on -> how a person would say it. "unknown" is what none of these is.
CAUSES = {
    "compute": "compute of their own",
    "input": "waiting for input",
    "host": "waiting for launches from their own host",
    "host_sync": "synchronisation calls of their own host",
    "allocator": "memory allocation",
    "copy": "copies",
}
_HOST = ("host", "launch_latency")


EXPLAINING_SHARE = 0.5
"""A cause must account for at least this much of the step time that the group costs."""


def cause_of(group: Sequence[int], partition: Sequence[Partition], lateness_ns: float) -> tuple[str, int]:
    """(cause, how much more of it per step in ns) for a group that costs ``lateness_ns`` per step.

    The excess is the group's mean over the median of the other ranks; waiting and transfer are no causes.
    """
    late = _own_time(row for row in partition if row.rank in group)
    others = _own_time(row for row in partition if row.rank not in group)
    excess = {
        cause: float(np.mean(values) - np.median(others.get(cause, [0]))) for cause, values in late.items()
    }
    if not excess or max(excess.values()) < max(EXPLAINING_SHARE * lateness_ns, 1):
        return "unknown", 0
    cause = max(sorted(excess), key=lambda one: excess[one])
    return cause, round(excess[cause])


def _own_time(rows: Iterable[Partition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for row in rows:
        idle = row.idle_by_cause_ns
        found["compute"].append(row.compute_ns)
        found["copy"].append(row.exposed_copy_ns)
        found["input"].append(idle.get("input", 0))
        found["host"].append(sum(idle.get(cause, 0) for cause in _HOST))
        found["host_sync"].append(idle.get("host_sync", 0))
        found["allocator"].append(idle.get("allocator", 0))
    return found
