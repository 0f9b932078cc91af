"""From a trace set to the rows of its timeline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from traceinsight.base.intervals import Spans
from traceinsight.base.labels import PHASES
from traceinsight.engine.timeline.rows import CATEGORIES, PathRow, Row, Timeline, disjoint
from traceinsight.replay.critical_path import CriticalPath, PathKind, critical_path
from traceinsight.replay.prepared import Unpredictable, prepare
from traceinsight.replay.solve import replay
from traceinsight.trace.activity import Activity, activities
from traceinsight.trace.collectives import communication_kernels
from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import MISSING, EventKind, Int8, Int64
from traceinsight.trace.trace_set import MatchedCollective, TraceSet

_PATH_CATEGORY = {
    PathKind.HOST: "host",
    PathKind.TRANSFER: "transfer",
    PathKind.LAUNCH: "launch",
    PathKind.DELAY: "delay",
    PathKind.BEFORE: "before",
}
_COPIES = (EventKind.MEMCPY, EventKind.MEMSET)


class _Names:
    """Gives every text a number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def all(self) -> tuple[str, ...]:
        return tuple(self._numbers)


def timeline_of(trace_set: TraceSet) -> Timeline:
    """The rows of all ranks, and the critical path where the replay explains the steps."""
    activity = activities(trace_set)
    origin = min(
        (
            int(trace.recording.events.start_ns[0]) - trace_set.offset_ns(trace.rank)
            for trace in trace_set.ranks
            if len(trace.recording.events)
        ),
        default=0,
    )
    names = _Names()
    rows = [row for trace in trace_set.ranks for row in _rows(trace_set, trace, activity, origin, names)]
    path, reason = _path(trace_set, activity, origin, names)
    return Timeline(
        origin_ns=origin,
        end_ns=max((int(row.end_ns[-1]) for row in rows), default=0),
        names=names.all(),
        rows=tuple(rows),
        steps=_steps(trace_set, origin),
        critical_path=path,
        no_path_because=reason,
    )


def _steps(trace_set: TraceSet, origin: int) -> tuple[tuple[int, int, int, int], ...]:
    return tuple(
        (trace.rank, number, step.window_ns[0] - shift, step.window_ns[1] - shift)
        for trace in trace_set.ranks
        for shift in (origin + trace_set.offset_ns(trace.rank),)
        for number in trace_set.steps
        if (step := trace.step(number)) is not None
    )


def _rows(
    trace_set: TraceSet, trace: RankTrace, activity: Mapping[int, Activity], origin: int, names: _Names
) -> list[Row]:
    shift = origin + trace_set.offset_ns(trace.rank)
    found = [_host(trace, shift, names)]
    if trace.has_gpu:
        kernels = trace.recording.of_kind(EventKind.KERNEL)
        compute = np.setdiff1d(kernels, communication_kernels(trace.recording), assume_unique=True)
        found.append(_events(trace, compute, "compute", shift, names))
    else:
        found.append(_spans(trace.rank, activity[trace.rank].compute, "operators", shift, names))
    found.append(_communication(trace_set, trace.rank, origin, names))
    found.append(_events(trace, trace.recording.of_kind(*_COPIES), "copy", shift, names))
    return [row for row in found if len(row.start_ns)]


def _host(trace: RankTrace, shift: int, names: _Names) -> Row:
    lane = trace.steps.main_lane
    start, end, phase = trace.annotations.phase_pieces(MISSING if lane is None else lane)
    numbers = np.array([names.number(one.replace("_", " ")) for one in PHASES], dtype=np.int32)
    return Row(trace.rank, "host", start - shift, end - shift, _all("host", len(start)), numbers[phase])


def _events(trace: RankTrace, events: Int64, category: str, shift: int, names: _Names) -> Row:
    table = trace.recording.events
    start, end, kept = disjoint(table.start_ns[events], table.end_ns[events])
    texts, position = np.unique(table.name[events[kept]], return_inverse=True)
    numbers = np.array([names.number(trace.recording.strings[text]) for text in texts], dtype=np.int32)
    name = numbers[position]
    return Row(trace.rank, category, start - shift, end - shift, _all(category, len(start)), name)


def _spans(rank: int, spans: Spans, name: str, shift: int, names: _Names) -> Row:
    number = np.full(len(spans), names.number(name), dtype=np.int32)
    return Row(rank, "compute", spans[:, 0] - shift, spans[:, 1] - shift, _all("compute", len(spans)), number)


def _communication(trace_set: TraceSet, rank: int, origin: int, names: _Names) -> Row:
    """Each collective up to the last arrival and after it; of two at once the one that began first shows."""
    pieces: list[tuple[int, int, int, int]] = []
    for one in trace_set.collectives:
        if rank not in one.ranks:
            continue
        at = one.ranks.index(rank)
        start, end = one.starts_ns[at], one.ends_ns[at]
        released = min(max(one.last_arrival_ns, start), end) if one.synchronising else start
        name = names.number(_collective_name(one))
        rest = "transfer" if one.complete else "unsplit"
        pieces.append((start, released, CATEGORIES.index("wait"), name))
        pieces.append((released, end, CATEGORIES.index(rest), name))
    table = np.array(sorted(pieces), dtype=np.int64).reshape(-1, 4)
    start_ns, end_ns, kept = disjoint(table[:, 0], table[:, 1])
    return Row(
        rank,
        "communication",
        start_ns - origin,
        end_ns - origin,
        table[kept, 2].astype(np.int8),
        table[kept, 3].astype(np.int32),
    )


def _collective_name(one: MatchedCollective) -> str:
    return f"{one.operation}: {one.label}" if one.label else one.operation


def _path(
    trace_set: TraceSet, activity: Mapping[int, Activity], origin: int, names: _Names
) -> tuple[PathRow | None, str | None]:
    prepared = prepare(trace_set, activity)
    if isinstance(prepared, Unpredictable):
        return None, prepared.reason
    paths = [critical_path(graph, replay(graph)) for graph in prepared.graphs]
    columns: dict[str, list[int]] = defaultdict(list)
    for path in paths:
        for category, name in _path_pieces(prepared.trace_set, path):
            columns["category"].append(CATEGORIES.index(category))
            columns["name"].append(names.number(name))
    row = PathRow(
        rank=MISSING,
        title="critical path",
        start_ns=np.concatenate([path.start_ns for path in paths]) - origin,
        end_ns=np.concatenate([path.end_ns for path in paths]) - origin,
        category=np.array(columns["category"], dtype=np.int8),
        name=np.array(columns["name"], dtype=np.int32),
        ranks=np.concatenate([path.rank for path in paths]),
    )
    return row, None


def _path_pieces(trace_set: TraceSet, path: CriticalPath) -> list[tuple[str, str]]:
    """Category and name of each piece."""
    recordings = {trace.rank: trace.recording for trace in trace_set.ranks}
    found = []
    for kind, rank, event in zip(path.kind.tolist(), path.rank.tolist(), path.event.tolist(), strict=True):
        category = _PATH_CATEGORY.get(PathKind(kind), "compute")
        if kind == PathKind.WORK and recordings[rank].events.kind[event] in _COPIES:
            category = "copy"
        found.append((category, category if event == MISSING else recordings[rank].name_of(event)))
    return found


def _all(category: str, count: int) -> Int8:
    return np.full(count, CATEGORIES.index(category), dtype=np.int8)
