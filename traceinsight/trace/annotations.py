"""Which annotations enclose a moment on a CPU thread, and what they say about it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceinsight.base.labels import PHASES, Phase, is_payload_label, phase_of
from traceinsight.trace.recording import MISSING, EventKind, Int64, Recording

LAUNCH_PREFIXES = ("nccl:", "xccl:")  # around the launch of a kernel
WORKER_PREFIXES = ("gloo:", "mpi:", "ucc:")  # around the collective itself, on a worker thread


@dataclass(frozen=True, slots=True)
class _Meaning:
    """What one name says; every name is looked at once."""

    phase: int  # position in PHASES, MISSING when the name says nothing
    is_payload: bool  # names a communication
    is_backend: bool  # nccl:*, gloo:*


@dataclass(frozen=True, slots=True)
class _Timeline:
    """One thread as pieces of constant innermost annotation. Columns have one entry per annotation.

    ``cuts_ns`` are the moments at which the innermost annotation changes, ``innermost`` the annotation from
    each of them on (a position in the columns, MISSING for none). ``phase``, ``payload`` and ``backend`` are
    those of the nearest annotation around, itself included, that has one: a phase, and two event indices.
    """

    cuts_ns: Int64
    innermost: Int64
    phase: Int64
    payload: Int64
    backend: Int64

    def at(self, times_ns: Int64) -> Int64:
        """Position of the innermost annotation at each time, MISSING where there is none."""
        piece = np.searchsorted(self.cuts_ns, times_ns, side="right") - 1
        return np.where(piece >= 0, self.innermost[piece], MISSING)


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What encloses a moment: event indices of annotations, MISSING where there is none."""

    payload: int
    backend: int


_NOTHING = Surroundings(MISSING, MISSING)


class AnnotationIndex:
    """Answers "inside which annotations was this thread at this time?" for many moments at once.

    Built from the ANNOTATION events of a recording only: operators are too many, and too fine, to name
    a phase. Building takes time proportional to the annotations, however deep they nest.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        meanings: dict[int, _Meaning] = {}
        annotations = recording.of_kind(EventKind.ANNOTATION)
        lanes = recording.events.lane[annotations]
        self._timelines = {
            int(lane): self._timeline(annotations[lanes == lane], meanings) for lane in np.unique(lanes)
        }

    def _timeline(self, event: Int64, meanings: dict[int, _Meaning]) -> _Timeline:
        events = self._recording.events
        ends = events.end_ns[event].tolist()
        columns = np.full((3, len(event)), MISSING, dtype=np.int64)
        stack: list[int] = []
        cuts: list[int] = []
        innermost: list[int] = []

        def close_until(moment: int | None) -> None:
            while stack and (moment is None or ends[stack[-1]] <= moment):
                cuts.append(ends[stack.pop()])
                innermost.append(stack[-1] if stack else MISSING)

        for position, (one, begin) in enumerate(
            zip(event.tolist(), events.start_ns[event].tolist(), strict=True)
        ):
            close_until(begin)
            around = columns[:, stack[-1]] if stack else np.full(3, MISSING, dtype=np.int64)
            columns[:, position] = self._said_by(one, around, meanings)
            if stack:  # an annotation that outlasts the one around it is cut off with it
                ends[position] = min(ends[position], ends[stack[-1]])
            stack.append(position)
            cuts.append(begin)
            innermost.append(position)
        close_until(None)
        cut_array = np.array(cuts, dtype=np.int64)
        return _Timeline(cut_array, np.array(innermost, dtype=np.int64), *columns)

    def _said_by(self, event: int, around: Int64, meanings: dict[int, _Meaning]) -> list[int]:
        """(phase, payload, backend) at an annotation: its own, else those around it."""
        name = int(self._recording.events.name[event])
        if name not in meanings:
            meanings[name] = _meaning(self._recording.strings[name])
        meaning = meanings[name]
        return [
            int(around[0]) if meaning.phase == MISSING else meaning.phase,
            event if meaning.is_payload else int(around[1]),
            event if meaning.is_backend else int(around[2]),
        ]

    def phases_at(self, lanes: Int64, times_ns: Int64) -> list[Phase | None]:
        """The phase each thread was in at each time; None where no annotation tells."""
        index = np.full(len(times_ns), MISSING, dtype=np.int64)
        for lane, timeline in self._timelines.items():
            chosen = np.flatnonzero(lanes == lane)
            if len(chosen):
                position = timeline.at(times_ns[chosen])
                index[chosen] = np.where(position == MISSING, MISSING, timeline.phase[position])
        return [None if phase == MISSING else PHASES[phase] for phase in index.tolist()]

    def phase_pieces(self, lane: int) -> tuple[Int64, Int64, Int64]:
        """Starts, ends and positions in ``PHASES`` of the pieces of time a thread spent in a phase.

        Pieces are disjoint and in order of time, on the rank's clock; neighbours of one phase are one piece.
        """
        timeline = self._timelines.get(lane)
        if timeline is None:
            nothing = np.empty(0, dtype=np.int64)
            return nothing, nothing, nothing
        phase = np.where(timeline.innermost == MISSING, MISSING, timeline.phase[timeline.innermost])
        changes = np.flatnonzero(np.diff(phase, prepend=MISSING - 1))
        starts, phase = timeline.cuts_ns[changes], phase[changes]
        ends = np.append(starts[1:], timeline.cuts_ns[-1])
        keep = (phase != MISSING) & (ends > starts)
        return starts[keep], ends[keep], phase[keep]

    def around(self, lane: int, time_ns: int) -> Surroundings:
        """The nearest annotations around a moment that name a communication, and its backend."""
        timeline = self._timelines.get(lane)
        if timeline is None:
            return _NOTHING
        position = int(timeline.at(np.array([time_ns], dtype=np.int64))[0])
        if position == MISSING:
            return _NOTHING
        return Surroundings(int(timeline.payload[position]), int(timeline.backend[position]))


def _meaning(name: str) -> _Meaning:
    phase = phase_of(name)
    backend = name.startswith(LAUNCH_PREFIXES + WORKER_PREFIXES)
    return _Meaning(
        phase=MISSING if phase is None else PHASES.index(phase),
        is_payload=not backend and is_payload_label(name),
        is_backend=backend,
    )
