"""Which device work a synchronising call waited for: the trace does not say it."""

from __future__ import annotations

import numpy as np

from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import MISSING, EventKind, Int64

QUICK_SYNC_NS = 5_000
"""A synchronising call that finds the device done returns within microseconds."""

_LOOK_BACK = 64


class Awaited:
    """The device work of one rank, as its host waits for it. Times on the rank's own clock.

    Args:
        trace: The rank.
        gpu: Its GPU events, shape (n,).

    """

    def __init__(self, trace: RankTrace, gpu: Int64) -> None:
        self._trace, self._gpu = trace, gpu
        events = trace.recording.events
        launch = trace.launch[gpu]
        self._launched_ns = np.where(launch == MISSING, np.iinfo(np.int64).min, events.start_ns[launch])
        self._ends_ns = events.end_ns[gpu]
        self._by_end = np.argsort(self._ends_ns, kind="stable")
        self._sorted_ends_ns = self._ends_ns[self._by_end]
        self._copies = self._copies_by_phase()

    def work(self, call: int, known_ns: int, returned_ns: int) -> int:
        """Position of what a call waited for among the GPU events, MISSING where nothing tells.

        That is the work launched before it that ended last before it returned. A quick call that found
        that work done waited for nothing. What it asked for was then the whole device, if its name says so;
        else the last copy to the host that its phase launched before it, if there is one: the host reads a
        value.

        Args:
            call: The runtime event.
            known_ns: The host's moment before its return; what was launched later is not waited for.
            returned_ns: Its return.

        """
        last = self._ended_last(known_ns, returned_ns)
        begun_ns = int(self._trace.recording.events.start_ns[call])
        if last == MISSING or self._ends_ns[last] > begun_ns:
            return last
        if not 0 < returned_ns - begun_ns <= QUICK_SYNC_NS:
            return last
        if "DeviceSynchronize" in self._trace.recording.name_of(call):
            return last
        copies = self._copies.get(self._phases(np.array([call]))[0], np.empty(0, dtype=np.int64))
        before = copies[self._launched_ns[copies] <= known_ns]
        return int(before[-1]) if len(before) else MISSING

    def end_ns(self, work: int) -> int:
        """When a piece of work was done."""
        return int(self._ends_ns[work])

    def _ended_last(self, known_ns: int, returned_ns: int) -> int:
        until = int(np.searchsorted(self._sorted_ends_ns, returned_ns, side="right"))
        recent = self._by_end[max(0, until - _LOOK_BACK) : until][::-1]
        launched = recent[self._launched_ns[recent] <= known_ns]
        return int(launched[0]) if len(launched) else MISSING

    def _copies_by_phase(self) -> dict[object, Int64]:
        """Copies to the host in the order of their launches, by the phase that launched them."""
        recording, launch = self._trace.recording, self._trace.launch
        copies = recording.named(recording.of_kind(EventKind.MEMCPY), lambda name: "DtoH" in name)
        found = np.flatnonzero(np.isin(self._gpu, copies) & (launch[self._gpu] != MISSING))
        found = found[np.argsort(self._launched_ns[found], kind="stable")]
        phases = self._phases(launch[self._gpu[found]])
        return {
            phase: found[[other == phase for other in phases]] for phase in set(phases) if phase is not None
        }

    def _phases(self, calls: Int64) -> list[object]:
        events = self._trace.recording.events
        return list(
            self._trace.annotations.phases_at(events.lane[calls].astype(np.int64), events.start_ns[calls])
        )
