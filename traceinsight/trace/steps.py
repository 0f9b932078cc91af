"""Where the training steps of one rank begin and end.

CPU step = ``ProfilerStep#N``. Device step k = from the first GPU event launched in step k to the first one
launched in step k+1, found through launch correlation: the annotation mirrored on the GPU covers only part
of a step. The last captured step has no successor: its window is as long as its CPU step, which is when the
next step's first event was due (ending it at its last event would add the GPU's whole backlog).

Without ProfilerStep a recurring optimizer call or top-level annotation takes its place; without either, the
whole recording is one window.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traceinsight.base.labels import STEP_LABEL, without_batch_index
from traceinsight.trace.recording import GPU_WORK, MISSING, EventKind, Int64, Recording

_WHOLE, _NONE = "whole recording", "none"

MIN_RECURRENCES = 3
"""A label must recur this often to be taken for a step: two could be a coincidence."""


@dataclass(frozen=True, slots=True)
class Step:
    """One step of one rank, on the rank's clock. The device window is None when no GPU work was launched."""

    number: int
    cpu_start_ns: int
    cpu_end_ns: int
    device_start_ns: int | None
    device_end_ns: int | None

    @property
    def window_ns(self) -> tuple[int, int]:
        """The window that numbers rest on: the device's where there is one, else the CPU's."""
        if self.device_start_ns is None or self.device_end_ns is None:
            return self.cpu_start_ns, self.cpu_end_ns
        return self.device_start_ns, self.device_end_ns


@dataclass(frozen=True, slots=True)
class Steps:
    """The steps of one rank in order, how they were found, and the step of every event.

    ``of_event`` has shape (n_events,): index into ``steps`` of the step that launched a GPU event, or in
    which a CPU event starts; -1 before the first captured step, ``len(steps)`` after the last.
    """

    steps: tuple[Step, ...]
    source: str
    main_lane: int | None
    of_event: Int64
    by_number: Mapping[int, Step] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_number", {step.number: step for step in self.steps})

    @property
    def marked(self) -> bool:
        """Whether anything in the trace marks steps; otherwise the one "step" is the whole recording."""
        return self.source not in {_WHOLE, _NONE}


def find_steps(recording: Recording, launch: Int64) -> Steps:
    """Find the steps of one rank. ``launch`` is what :func:`launch_of_gpu_events` gave."""
    numbers, starts, ends, source, lane = _cpu_steps(recording)
    of_event = _step_of_events(recording, launch, starts, ends)
    device = _device_windows(recording, launch, of_event, starts, ends)
    steps = tuple(
        Step(number, start, end, *window)
        for number, start, end, window in zip(numbers, starts.tolist(), ends.tolist(), device, strict=True)
    )
    return Steps(steps, source, lane, of_event)


def _cpu_steps(recording: Recording) -> tuple[list[int], Int64, Int64, str, int | None]:
    events = recording.events
    annotations = recording.of_kind(EventKind.ANNOTATION)
    numbered: dict[int, int] = {}
    for event in annotations.tolist():
        match = STEP_LABEL.match(recording.name_of(event))
        if match:
            numbered.setdefault(int(match[1]), event)
    if numbered:
        numbers = sorted(numbered, key=lambda number: int(events.start_ns[numbered[number]]))
        chosen = np.array([numbered[number] for number in numbers], dtype=np.int64)
        return (
            numbers,
            events.start_ns[chosen],
            events.end_ns[chosen],
            "ProfilerStep",
            int(events.lane[chosen[0]]),
        )
    marks, source, lane = _recurring_marks(recording, annotations)
    if marks is not None:
        return list(range(len(marks) - 1)), marks[:-1], marks[1:], source, lane
    return _whole_recording(recording)


def _recurring_marks(recording: Recording, annotations: Int64) -> tuple[Int64 | None, str, int | None]:
    """Boundaries between steps from a label that recurs.

    The end of each optimizer call, else the start of the annotation that covers the most time.
    """
    events = recording.events
    found: dict[str, list[int]] = defaultdict(list)
    for event in annotations.tolist():
        found[without_batch_index(recording.name_of(event))].append(event)
    recurring = {name: chosen for name, chosen in found.items() if len(chosen) >= MIN_RECURRENCES}
    optimizer = sorted(name for name in recurring if name.startswith(("Optimizer.step#", "## optimizer ##")))
    if optimizer:
        chosen = recurring[optimizer[0]]
        return np.sort(events.end_ns[chosen]), f"end of {optimizer[0]}", int(events.lane[chosen[0]])
    cover = {
        name: int(events.dur_ns[chosen].sum())
        for name, chosen in sorted(recurring.items())
        if name.startswith("##") or "DataLoader" in name
    }
    if not cover:
        return None, "", None
    best = max(cover, key=lambda name: cover[name])
    chosen = recurring[best]
    return np.sort(events.start_ns[chosen]), f"start of {best}", int(events.lane[chosen[0]])


def _whole_recording(recording: Recording) -> tuple[list[int], Int64, Int64, str, int | None]:
    events = recording.events
    if not len(events):
        nothing = np.empty(0, dtype=np.int64)
        return [], nothing, nothing, _NONE, None
    cpu = recording.of_kind(EventKind.CPU_OP, EventKind.ANNOTATION)
    lane = int(np.bincount(events.lane[cpu]).argmax()) if len(cpu) else None
    start = events.start_ns[:1].copy()
    end = np.array([events.end_ns.max()], dtype=np.int64)
    return [0], start, end, _WHOLE, lane


def _step_of_events(recording: Recording, launch: Int64, starts: Int64, ends: Int64) -> Int64:
    """By the time of the launch where it was recorded, else by the event's own start."""
    events = recording.events
    if not len(starts):
        return np.full(len(events), MISSING, dtype=np.int64)
    moment = np.where(launch != MISSING, events.start_ns[launch], events.start_ns)
    step = np.searchsorted(starts, moment, side="right") - 1
    step[moment >= ends[-1]] = len(starts)
    gpu = np.zeros(len(events), dtype=np.bool_)
    gpu[recording.of_kind(*GPU_WORK)] = True
    unlaunched = gpu & (launch == MISSING)
    linked = gpu & (launch != MISSING) & (step >= 0) & (step < len(starts))
    if unlaunched.any() and linked.any():
        step[unlaunched] = _by_device_time(events.start_ns, step, linked, unlaunched, len(starts))
    return np.asarray(step, dtype=np.int64)


def _by_device_time(
    start_ns: Int64, step: Int64, linked: NDArray[np.bool_], unlaunched: NDArray[np.bool_], count: int
) -> Int64:
    """A GPU event without a launch belongs to the step whose device window it starts in.

    Before the first window means: launched before the capture began.
    """
    first = np.full(count, np.iinfo(np.int64).max, dtype=np.int64)
    np.minimum.at(first, step[linked], start_ns[linked])
    first = np.minimum.accumulate(first[::-1])[::-1]  # a step without GPU work starts with the next
    return np.searchsorted(first, start_ns[unlaunched], side="right") - 1


def _device_windows(
    recording: Recording, launch: Int64, of_event: Int64, starts: Int64, ends: Int64
) -> list[tuple[int | None, int | None]]:
    events = recording.events
    gpu = recording.of_kind(*GPU_WORK)
    count = len(starts)
    step = of_event[gpu]
    captured = gpu[(step >= 0) & (step < count)]
    if not len(captured):
        return [(None, None)] * count
    starts_ns, step = events.start_ns[captured], of_event[captured]
    linked = launch[captured] != MISSING
    begin_of = _first_start(starts_ns[linked], step[linked], count)
    begin_of = np.where(begin_of == _NEVER, _first_start(starts_ns, step, count), begin_of)
    first = [None if begin == _NEVER else begin for begin in begin_of.tolist()]
    if len(recording.of_kind(EventKind.CPU_OP, EventKind.ANNOTATION, EventKind.RUNTIME)):
        lengths = (ends - starts).tolist()
    else:
        begin_ns = min(begin for begin in first if begin is not None)
        lengths = [int(events.end_ns[captured].max()) - begin_ns] * count
    windows: list[tuple[int | None, int | None]] = [(None, None)] * count
    later: list[int] = []  # starts of the steps after this one, the nearest last
    for index in range(count - 1, -1, -1):
        begin = first[index]
        if begin is None:
            continue
        while later and later[-1] <= begin:
            later.pop()
        windows[index] = (begin, later[-1] if later else begin + lengths[index])
        later.append(begin)
    return windows


_NEVER = np.iinfo(np.int64).max


def _first_start(starts_ns: Int64, step: Int64, count: int) -> Int64:
    """The earliest start per step, ``_NEVER`` for a step without any."""
    first = np.full(count, _NEVER, dtype=np.int64)
    np.minimum.at(first, step, starts_ns)
    return first
