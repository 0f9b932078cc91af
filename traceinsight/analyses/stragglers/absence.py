"""What members without a recorded part may have done to the others' arrivals.

Where a member was not captured, or its kernel was lost, nobody knows when it came. Its group may have waited
for it, and so come late to the next collective with other ranks: nobody may be blamed for that.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceinsight.analyses.stragglers.arrivals import Arrivals, no_later_than_others


def as_if_absent_came(arrivals: Arrivals) -> Arrivals:
    """The same step if members without a part had come with the last of the captured ones.

    What an incomplete collective took beyond the same one of the groups beside it counts as waiting for them;
    with no group beside it all of it does, for how long it transfers is not known. Its members then go on
    earlier, as far as they were late themselves. Where all ranks are in one group, nothing changes: they all
    waited alike.
    """
    times = arrivals.times_ns.copy()
    unexplained = _unexplained_ns(arrivals)
    part = ~np.isnan(times)
    ahead = np.zeros(len(arrivals.ranks))
    for row in np.argsort(arrivals.latest_ns(arrivals.ranks), kind="stable").tolist():
        mine = part[row]
        more = ahead - ahead[mine].min()
        times[row] = no_later_than_others(times[row], mine & (more > 0), more)
        gain = float(arrivals.times_ns[row][mine].max() - times[row][mine].max())
        released = mine | arrivals.lost[row]
        ahead[released] = np.maximum(ahead[released], gain + unexplained[row])
    return replace(arrivals, times_ns=times)


def _unexplained_ns(arrivals: Arrivals) -> NDArray[np.float64]:
    """Per collective: how long its captured members may have waited for one without a part."""
    after_last = arrivals.after_last_ns()
    found = np.zeros(len(after_last))
    for row in np.flatnonzero(arrivals.incomplete).tolist():
        beside = arrivals.rounds == arrivals.rounds[row]
        beside[row] = False
        usual = float(after_last[beside].min()) if beside.any() else 0.0
        found[row] = max(float(after_last[row]) - max(usual, 0.0), 0.0)
    return found
