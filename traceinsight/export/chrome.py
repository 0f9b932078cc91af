"""One Chrome trace of all ranks, which ui.perfetto.dev opens: a process per rank, clocks aligned.

Events are written one by one from the columns that are in memory already; no list of them is ever built.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Protocol

import numpy as np

from traceinsight.diagnosis import Diagnosis
from traceinsight.export.marks import Mark, finding_marks, path_marks, step_marks, wait_marks
from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import MISSING, EventKind, Lane
from traceinsight.trace.trace_set import TraceSet

_FINDINGS_NAME = "traceinsight: findings"
_FIRST_MARK_TRACK = 1_000_000
"""Tracks of our own come after all lanes of a recording, whose numbers start at 1."""

_GROUPS = {EventKind.GPU_ANNOTATION: 1}
"""Annotations mirrored onto a stream get a track beside it: they need not nest with its kernels."""


class Sink(Protocol):
    """What text can be written to."""

    def write(self, text: str, /) -> object:
        """Append the text."""
        ...


def write_chrome_trace(trace_set: TraceSet, diagnosis: Diagnosis, sink: Sink) -> None:
    """Write the whole trace as JSON."""
    origin_ns = _origin(trace_set)
    about = {
        "traceinsight": diagnosis.generator.version,
        "verdict": diagnosis.verdict,
        "origin_ns": str(origin_ns),
    }
    sink.write(f'{{"displayTimeUnit": "ns", "otherData": {json.dumps(about)}, "traceEvents": [\n')
    separator = ""
    for line in _lines(trace_set, diagnosis, origin_ns):
        sink.write(f"{separator}{line}")
        separator = ",\n"
    sink.write("\n]}\n")


def _lines(trace_set: TraceSet, diagnosis: Diagnosis, origin_ns: int) -> Iterator[str]:
    late = {rank for straggler in diagnosis.stragglers for rank in straggler.ranks}
    waits, steps, path = wait_marks(trace_set), step_marks(trace_set), path_marks(trace_set)
    for rank in trace_set.ranks:
        yield from _process(trace_set, rank, late=rank.rank in late)
        yield from _events(rank, origin_ns + trace_set.offset_ns(rank.rank))
        tracks = {
            "critical path": path.get(rank.rank, []),
            "waits for late ranks": waits.get(rank.rank, []),
            "analysed steps": steps.get(rank.rank, []),
        }
        yield from _tracks(rank.rank, tracks, origin_ns)
    process = max((rank.rank for rank in trace_set.ranks), default=0) + 1
    yield _metadata("process_name", process, 0, name=_FINDINGS_NAME)
    yield _metadata("process_sort_index", process, 0, sort_index=-1)
    yield from _tracks(process, finding_marks(trace_set, diagnosis), origin_ns)


def _origin(trace_set: TraceSet) -> int:
    """The earliest event on the common clock, so that times stay small and exact."""
    firsts = [
        int(rank.recording.events.start_ns[0]) - trace_set.offset_ns(rank.rank)
        for rank in trace_set.ranks
        if len(rank.recording.events)
    ]
    return min(firsts, default=0)


def _process(trace_set: TraceSet, rank: RankTrace, *, late: bool) -> Iterator[str]:
    yield _metadata("process_name", rank.rank, 0, name=f"rank {rank.rank}")
    yield _metadata("process_sort_index", rank.rank, 0, sort_index=rank.rank)
    labels = [
        *([rank.recording.host] if rank.recording.host else []),
        *(["late"] if late else []),
        *(["clock not aligned"] if trace_set.clocks[rank.rank].offset_ns is None else []),
    ]
    if labels:
        yield _metadata("process_labels", rank.rank, 0, labels=", ".join(labels))
    lanes = rank.recording.lanes
    for index in np.unique(rank.recording.events.lane).tolist():
        yield from _lane(rank.rank, index, lanes[index])


def _lane(process: int, index: int, lane: Lane) -> Iterator[str]:
    if lane.stream is None and lane.device is None:
        yield _metadata("thread_name", process, _track(index), name=lane.name or f"thread {lane.tid}")
        return
    stream = f"GPU {lane.device} stream {lane.stream if lane.stream is not None else lane.tid}"
    yield _metadata("thread_name", process, _track(index), name=stream)
    yield _metadata("thread_name", process, _track(index) + 1, name=f"{stream}: annotations")


def _track(lane: int) -> int:
    return 2 * lane + 1


def _events(rank: RankTrace, origin_ns: int) -> Iterator[str]:
    """Every event of the rank, and an arrow from each launch to its kernel."""
    recording, events = rank.recording, rank.recording.events
    names = [json.dumps(name) for name in recording.strings]
    kinds = {int(kind): kind.name.lower() for kind in EventKind}
    arguments = {
        one.event: _collective_arguments(rank, number) for number, one in enumerate(rank.collectives)
    }
    columns = (events.start_ns, events.dur_ns, events.name, events.kind, events.lane, rank.launch)
    for index in range(len(events)):
        start, length, name, kind, lane, launch = (int(column[index]) for column in columns)
        track = _track(lane) + _GROUPS.get(EventKind(kind), 0)
        extra = f', "args": {arguments[index]}' if index in arguments else ""
        yield (
            f'{{"ph": "X", "pid": {rank.rank}, "tid": {track}, "ts": {_us(start - origin_ns)}, '
            f'"dur": {_us(length)}, "cat": "{kinds[kind]}", "name": {names[name]}{extra}}}'
        )
        if launch != MISSING:
            yield from _arrow(rank, index, launch, origin_ns)


def _arrow(rank: RankTrace, event: int, launch: int, origin_ns: int) -> Iterator[str]:
    events = rank.recording.events
    for phase, end in (("s", launch), ("f", event)):
        bind = ', "bp": "e"' if phase == "f" else ""
        yield (
            f'{{"ph": "{phase}", "id": "{rank.rank}.{event}", "pid": {rank.rank}, '
            f'"tid": {_track(int(events.lane[end]))}, "ts": {_us(int(events.start_ns[end]) - origin_ns)}, '
            f'"cat": "launch", "name": "launch"{bind}}}'
        )


def _collective_arguments(rank: RankTrace, number: int) -> str:
    one = rank.collectives[number]
    known: Mapping[str, object] = {
        "operation": one.operation,
        "label": one.label,
        "phase": str(one.phase),
        "step": one.step,
        "in_bytes": one.in_bytes,
        "dtype": one.dtype,
        "group": one.group_name,
    }
    return json.dumps({name: value for name, value in known.items() if value is not None})


def _tracks(process: int, tracks: Mapping[str, list[Mark]], origin_ns: int) -> Iterator[str]:
    """Marks as slices. Those that overlap go to a further track: slices of one track must nest."""
    number = _FIRST_MARK_TRACK
    for title, marks in tracks.items():
        ends: list[int] = []
        for mark in sorted(marks, key=lambda mark: (mark.start_ns, mark.end_ns)):
            row = next((row for row, end in enumerate(ends) if end <= mark.start_ns), len(ends))
            if row == len(ends):
                ends.append(0)
                yield _metadata("thread_name", process, number + row, name=title)
                yield _metadata("thread_sort_index", process, number + row, sort_index=number + row)
            ends[row] = mark.end_ns
            yield json.dumps({
                "ph": "X", "pid": process, "tid": number + row, "cat": "traceinsight", "name": mark.name,
                "ts": float(_us(mark.start_ns - origin_ns)), "dur": float(_us(mark.end_ns - mark.start_ns)),
                "args": dict(mark.facts),
            })  # fmt: skip
        number += len(ends)


def _metadata(what: str, process: int, track: int, **args: object) -> str:
    return json.dumps({"ph": "M", "name": what, "pid": process, "tid": track, "args": args})


def _us(time_ns: int) -> str:
    """Microseconds with all three decimals, exact where a float would round."""
    sign = "-" if time_ns < 0 else ""
    whole, rest = divmod(abs(time_ns), 1000)
    return f"{sign}{whole}.{rest:03d}"
