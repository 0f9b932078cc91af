"""Turns collected columns into the sorted event table of a recording."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceinsight.reading.columns import Collector, Columns, Counts, Interner, lane_text
from traceinsight.reading.kinds import (
    GPU_FUNCTIONS_PID,
    PSEUDO_CATEGORIES,
    is_annotation_name,
    kind_of_category,
)
from traceinsight.reading.timestamps import Flags
from traceinsight.trace.recording import (
    GPU_WORK,
    CommArgs,
    EventKind,
    EventTable,
    Int8,
    Int32,
    Int64,
    Lane,
)

_LATEST_NS = 1 << 62
"""The year 2116 as an absolute time."""


@dataclass(frozen=True, slots=True)
class Table:
    """The parts of a recording that the events make up, before repairs."""

    strings: tuple[str, ...]
    lanes: tuple[Lane, ...]
    events: EventTable
    comm_args: dict[int, CommArgs]
    counts: Counts
    duplicates: int


def build_table(collector: Collector, base_ns: int) -> Table:
    """Joins, classifies, sorts and interns; the order of the file leaves no trace."""
    columns = _joined(collector.blocks)
    collector.blocks.clear()
    keep = _real_events(columns, collector) & _within_time(columns, collector, base_ns)
    kind = _kinds(columns, collector)
    strings, name_rank = _sorted_names(collector.names, columns.name[keep])
    lanes, lane = _lanes(columns, kind, keep, collector)
    rows = np.flatnonzero(keep)
    events = EventTable(
        start_ns=columns.start_ns[rows] + base_ns,
        dur_ns=columns.dur_ns[rows],
        name=name_rank[columns.name[rows]],
        kind=kind[rows],
        lane=lane[rows],
        correlation=columns.correlation[rows],
        external_id=columns.external_id[rows],
        size_bytes=np.where(
            np.isin(kind[rows], (EventKind.MEMCPY, EventKind.MEMSET)), columns.size_bytes[rows], -1
        ),
    )
    del columns
    comm_by_row = _renumbered(collector.comm_args, rows)
    order = _sort_order(events, comm_by_row)
    events = _taken(events, order)
    comm_args = _renumbered(comm_by_row, order)
    events, comm_args, duplicates = _without_duplicates(events, comm_args)
    return Table(strings, lanes, events, comm_args, collector.counts, duplicates)


def _joined(blocks: list[Columns]) -> Columns:
    if not blocks:
        empty64, empty32 = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32)
        return Columns(
            empty64, empty64, empty32, empty32, empty32, empty64, empty64, empty64, empty32, empty64
        )
    return Columns(
        *(np.concatenate([getattr(block, column.name) for block in blocks]) for column in fields(Columns))
    )


def _taken(events: EventTable, order: Int64) -> EventTable:
    return EventTable(*(getattr(events, column.name)[order] for column in fields(EventTable)))


def _real_events(columns: Columns, collector: Collector) -> Flags:
    pseudo = [number for text, number in collector.categories.items() if text.lower() in PSEUDO_CATEGORIES]
    keep: Flags = ~np.isin(columns.category, pseudo)
    return keep


def _within_time(columns: Columns, collector: Collector, base_ns: int) -> Flags:
    """Which events lie, with the base of the file, where the difference of any two times fits int64."""
    latest_start = _LATEST_NS - base_ns - np.maximum(columns.dur_ns, 0)
    kept: Flags = (columns.start_ns <= latest_start) & (columns.start_ns >= -_LATEST_NS - base_ns)
    kept &= columns.dur_ns >= 0  # a begin and an end too far apart for int64
    collector.counts.unreadable_time += int((~kept).sum())
    return kept


def _kinds(columns: Columns, collector: Collector) -> Int8:
    by_category = np.array(
        [kind_of_category(text) for text in collector.categories] or [EventKind.OTHER], dtype=np.int8
    )
    kind: Int8 = by_category[columns.category] if len(columns.category) else np.zeros(0, dtype=np.int8)
    annotations = [number for text, number in collector.names.items() if is_annotation_name(text)]
    kind[(kind == EventKind.CPU_OP) & np.isin(columns.name, annotations)] = EventKind.ANNOTATION
    no_category = collector.categories.get("", -1)
    gpu_lanes = [number for (pid, _), number in collector.lanes.items() if pid == GPU_FUNCTIONS_PID]
    kind[(columns.category == no_category) & np.isin(columns.lane, gpu_lanes)] = EventKind.KERNEL
    return kind


def _sorted_names(names: Interner, used: Int32) -> tuple[tuple[str, ...], Int32]:
    """The strings in use, sorted, and the new index of each old one."""
    in_use = np.zeros(len(names), dtype=np.bool_)
    in_use[used] = True
    texts = list(names)
    order = sorted(np.flatnonzero(in_use).tolist(), key=texts.__getitem__)
    rank = np.zeros(max(len(texts), 1), dtype=np.int32)
    rank[order] = np.arange(len(order), dtype=np.int32)
    return tuple(texts[number] for number in order), rank


def _lanes(columns: Columns, kind: Int8, keep: Flags, collector: Collector) -> tuple[tuple[Lane, ...], Int32]:
    """Lanes in use, sorted by (pid, tid), and the lane of every event.

    A CPU thread and a GPU stream stay apart even where their numbers agree: in a container the process may
    well be number 1 and have a thread 7, as GPU 1 has a stream 7. The thread comes first then.
    """
    keys = [(lane_text(pid), lane_text(tid)) for pid, tid in collector.lanes]
    sorted_keys = sorted(set(keys))
    position = {key: index for index, key in enumerate(sorted_keys)}
    key_rank = np.array([position[key] for key in keys] or [0], dtype=np.int64)
    on_gpu = np.isin(kind, (*GPU_WORK, EventKind.GPU_ANNOTATION))
    on_gpu |= (kind == EventKind.OTHER) & (columns.device >= 0) & (columns.stream >= 0)  # cuda_sync
    place = 2 * key_rank[columns.lane] + on_gpu
    used = np.unique(place[keep])
    lane: Int32 = np.searchsorted(used, place).astype(np.int32)
    devices = _gpu_places(columns, on_gpu & keep, lane)
    lanes = []
    for index, code in enumerate(used.tolist()):
        pid, tid = sorted_keys[code // 2]
        name = collector.lane_names.get((pid, tid), "")
        if index in devices:
            device, stream = devices[index]
            lanes.append(Lane(pid, tid, name, _or_number(device, pid), _or_number(stream, tid)))
        else:
            lanes.append(Lane(pid, tid, name))
    return tuple(lanes), lane


def _gpu_places(columns: Columns, on_gpu: Flags, lane: Int32) -> dict[int, tuple[int, int]]:
    """Device and stream of every GPU lane; where its events disagree the most frequent, then the smallest."""
    places = np.stack([lane[on_gpu].astype(np.int64), columns.device[on_gpu], columns.stream[on_gpu]])
    distinct, counts = np.unique(places, axis=1, return_counts=True)
    best: dict[int, tuple[int, int]] = {}
    best_count: dict[int, int] = {}
    for (number, device, stream), count in zip(distinct.T.tolist(), counts.tolist(), strict=True):
        told = count if device >= 0 or stream >= 0 else 0  # annotations mirrored on the GPU tell neither
        if number not in best or told > best_count[number]:
            best[number], best_count[number] = (device, stream), told
    return best


def _or_number(told: int, text: str) -> int | None:
    if told >= 0:
        return told
    digits = text.rsplit(maxsplit=1)[-1] if text.strip() else ""  # "stream 7"
    return int(digits) if digits.isdecimal() and digits.isascii() and len(digits) < 10 else None


def _renumbered(comm_args: dict[int, CommArgs], rows: Int64) -> dict[int, CommArgs]:
    """``comm_args`` by position in ``rows`` instead of by row."""
    if not comm_args:
        return {}
    old = np.fromiter(comm_args, dtype=np.int64, count=len(comm_args))
    positions = np.flatnonzero(np.isin(rows, old))
    return {int(position): comm_args[int(rows[position])] for position in positions}


def _sort_order(events: EventTable, comm_args: dict[int, CommArgs]) -> Int64:
    """By (start, -duration, lane, name); the other columns break ties, so that the order is always the same.

    Few events start at the same time: a sort by start and a full sort of the ties is faster than a full sort.
    """
    order = np.argsort(events.start_ns, kind="stable")
    start = events.start_ns[order]
    same_as_next = start[1:] == start[:-1]
    tied = np.zeros(len(order), dtype=np.bool_)
    tied[1:] |= same_as_next
    tied[:-1] |= same_as_next
    rows = order[tied]
    if len(rows):
        order[tied] = rows[np.lexsort(_tie_keys(events, comm_args, rows))]
    return order


def _tie_keys(events: EventTable, comm_args: dict[int, CommArgs], rows: Int64) -> list[NDArray[Any]]:
    texts = {row: repr(args) for row, args in comm_args.items()}
    text_rank = {text: index + 1 for index, text in enumerate(sorted(set(texts.values())))}
    comm_key = np.zeros(len(events), dtype=np.int64)
    for row, text in texts.items():
        comm_key[row] = text_rank[text]
    keys: list[NDArray[Any]] = [
        comm_key,
        events.size_bytes,
        events.external_id,
        events.correlation,
        events.kind,
        events.name,
        events.lane,
    ]
    return [*(key[rows] for key in keys), -events.dur_ns[rows], events.start_ns[rows]]


def _without_duplicates(
    events: EventTable, comm_args: dict[int, CommArgs]
) -> tuple[EventTable, dict[int, CommArgs], int]:
    """Drops events that are in the file twice.

    An event with a correlation or external id is told apart by it, so an equal one is a copy. Python frames
    and the like have no id, and short ones do repeat within a microsecond: these are thinned only by the
    factor by which the events with ids turned out to be multiplied.
    """
    if len(events) < 2:
        return events, comm_args, 0
    equal = np.ones(len(events) - 1, dtype=np.bool_)
    for column in fields(EventTable):
        values = getattr(events, column.name)
        equal &= values[1:] == values[:-1]
    for index in np.flatnonzero(equal).tolist():
        equal[index] = comm_args.get(index) == comm_args.get(index + 1)
    if not equal.any():
        return events, comm_args, 0
    group = np.concatenate([[0], np.cumsum(~equal)])
    position = np.arange(len(events)) - np.searchsorted(group, group)
    has_id = (events.correlation > 0) | (events.external_id > 0)
    factor = round(int(has_id.sum()) / max(1, int((has_id & (position == 0)).sum())))
    allowed = np.where(has_id, 1, -(-np.bincount(group)[group] // max(factor, 1)))
    rows = np.flatnonzero(position < allowed)
    return _taken(events, rows), _renumbered(comm_args, rows), len(events) - len(rows)


def with_durations(events: EventTable, dur_ns: Int64) -> tuple[EventTable, Int64]:
    """The table with other durations, sorted again, and the new order."""
    changed = replace(events, dur_ns=dur_ns)
    order = _sort_order(changed, {})
    return _taken(changed, order), order
