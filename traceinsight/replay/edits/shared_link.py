"""Collectives that crawl because a large exchange has the link at the same time.

Two transfers on one link share it. Where a small collective moves its bytes at a fraction of the rate of the
exchange beside it, it is mostly waiting for the link, and goes on as soon as the exchange is done.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from traceinsight.replay.facts import payload_bytes
from traceinsight.trace.trace_set import MatchedCollective

STARVED_RATE = 0.25
"""Below this share of the other's bytes per second, the link holds a transfer up, not its own size."""


def relief_ns(collectives: Sequence[MatchedCollective], ratio: NDArray[np.float64]) -> NDArray[np.float64]:
    """What each collective's transfer loses when those beside it shrink to ``ratio`` of themselves.

    Of the time in which a starved transfer overlaps a shrinking one, the share that vanishes there vanishes
    here. Both arrays have shape (n_collectives + 1,); the last entry belongs to no collective.
    """
    relief = np.zeros(len(ratio))
    begin = np.array([one.last_arrival_ns for one in collectives], dtype=np.int64)
    end = np.array([max(one.ends_ns) for one in collectives], dtype=np.int64)
    rate = np.array([_bytes_per_ns(one) for one in collectives])
    shrinking = np.flatnonzero(ratio[:-1] < 1)
    for index in np.flatnonzero((ratio[:-1] == 1) & np.isfinite(rate)).tolist():
        overlap = np.minimum(end[shrinking], end[index]) - np.maximum(begin[shrinking], begin[index])
        starving = shrinking[(overlap > 0) & (rate[index] < STARVED_RATE * rate[shrinking])]
        freed = (1 - ratio[starving]) * overlap[np.isin(shrinking, starving)]
        relief[index] = freed.max(initial=0.0)
    return relief


def _bytes_per_ns(one: MatchedCollective) -> float:
    """Payload over transfer; NaN where either is not known."""
    size, transfer_ns = payload_bytes(one), max(one.ends_ns) - one.last_arrival_ns
    return size / transfer_ns if size and one.complete and one.synchronising and transfer_ns > 0 else np.nan
