"""Which annotations enclose a moment on a CPU thread."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceinsight.base.labels import PHASES, Phase, phase_of
from traceinsight.trace.recording import MISSING, EventKind, Int64, Recording

_NO_PHASE = -1


@dataclass(frozen=True, slots=True)
class _LaneNest:
    """The annotations of one thread in order of start, with the annotation around each."""

    event: Int64
    start_ns: Int64
    end_ns: Int64
    parent: Int64  # position of the enclosing annotation in these arrays, MISSING at top level
    phase: Int64  # position in PHASES of the innermost phase known at this depth, or _NO_PHASE


class AnnotationIndex:
    """Answers "inside which annotations was this thread at this time?" for many moments at once.

    Built from the ANNOTATION events of a recording only: operators are too many, and too fine, to name
    a phase.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        phase_by_name: dict[int, int] = {}
        self._nests: dict[int, _LaneNest] = {}
        annotations = recording.of_kind(EventKind.ANNOTATION)
        lanes = recording.events.lane[annotations]
        for lane in np.unique(lanes):
            self._nests[int(lane)] = self._nest(annotations[lanes == lane], phase_by_name)

    def _nest(self, event: Int64, phase_by_name: dict[int, int]) -> _LaneNest:
        events = self._recording.events
        start, end = events.start_ns[event], events.end_ns[event]
        parent = np.full(len(event), MISSING, dtype=np.int64)
        phase = np.full(len(event), _NO_PHASE, dtype=np.int64)
        open_positions: list[int] = []
        ends = end.tolist()
        for position, (begin, name) in enumerate(
            zip(start.tolist(), events.name[event].tolist(), strict=True)
        ):
            while open_positions and ends[open_positions[-1]] <= begin:
                open_positions.pop()
            if name not in phase_by_name:
                known = phase_of(self._recording.strings[name])
                phase_by_name[name] = _NO_PHASE if known is None else PHASES.index(known)
            phase[position] = phase_by_name[name]
            if open_positions:
                parent[position] = open_positions[-1]
                if phase[position] == _NO_PHASE:
                    phase[position] = phase[open_positions[-1]]
            open_positions.append(position)
        return _LaneNest(event, start, end, parent, phase)

    def _innermost(self, nest: _LaneNest, times_ns: Int64) -> Int64:
        """Position of the innermost annotation around each time, ``MISSING`` where there is none."""
        position = np.searchsorted(nest.start_ns, times_ns, side="right") - 1
        for _ in range(len(nest.event)):
            ended = (position != MISSING) & (nest.end_ns[position] <= times_ns)
            if not ended.any():
                break
            position[ended] = nest.parent[position[ended]]
        return position

    def phases_at(self, lanes: Int64, times_ns: Int64) -> list[Phase | None]:
        """The phase each thread was in at each time; None where no annotation tells."""
        index = np.full(len(times_ns), _NO_PHASE, dtype=np.int64)
        for lane, nest in self._nests.items():
            chosen = np.flatnonzero(lanes == lane)
            if len(chosen):
                position = self._innermost(nest, times_ns[chosen])
                index[chosen] = np.where(position == MISSING, _NO_PHASE, nest.phase[position])
        return [None if phase == _NO_PHASE else PHASES[phase] for phase in index.tolist()]

    def enclosing(self, lane: int, time_ns: int) -> list[int]:
        """Event indices of the annotations around a moment, innermost first."""
        nest = self._nests.get(lane)
        if nest is None:
            return []
        position = int(self._innermost(nest, np.array([time_ns], dtype=np.int64))[0])
        found = []
        while position != MISSING:
            found.append(int(nest.event[position]))
            position = int(nest.parent[position])
        return found
