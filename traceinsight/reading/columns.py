"""Collects decoded events into columns, block by block, so that no event object outlives its block."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

from traceinsight.reading import schema, timestamps
from traceinsight.reading.comm_args import is_comm_name, parse_comm_args
from traceinsight.reading.numbers import int64_column, to_int
from traceinsight.reading.texts import MAX_NAME_LENGTH, shortened
from traceinsight.reading.timestamps import Flags
from traceinsight.trace.recording import MISSING, CommArgs, Int32, Int64, StreamWait

STREAM_WAIT = "Stream Wait Event"  # of the category cuda_sync

_MAX_LANE_LENGTH = 200
_NO_ARGS = schema.Args()
_SPAN_TYPES = (schema.Span, schema.ExactSpan)


class Interner(dict[Any, int]):
    """Numbers its keys in the order in which they first appear."""

    def __missing__(self, key: Any) -> int:
        number = len(self)
        self[key] = number
        return number


class NameInterner(Interner):
    """Numbers names; those too long are cut first, and never kept whole.

    Attributes:
        cut: Events whose name was cut.

    """

    def __init__(self) -> None:
        super().__init__()
        self.cut = 0

    def __missing__(self, key: str) -> int:
        if len(key) <= MAX_NAME_LENGTH:
            return super().__missing__(key)
        self.cut += 1
        return self[shortened(key)]


@dataclass(slots=True)
class Columns:
    """One block's (or all blocks') events; row i of every array is the same event."""

    start_ns: Int64
    dur_ns: Int64
    name: Int32
    category: Int32
    lane: Int32
    correlation: Int64
    external_id: Int64
    size_bytes: Int64
    device: Int32
    stream: Int64


@dataclass(slots=True)
class Counts:
    """Events left out or altered while collecting."""

    unreadable_time: int = 0
    negative_duration: int = 0
    missing_duration: int = 0
    empty_gpu_event: int = 0
    impossible_comm_args: int = 0


@dataclass(slots=True)
class Collector:
    """The sink of an :class:`~traceinsight.reading.events.EventReader`.

    Attributes:
        blocks: Columns per block.
        names, categories, lanes: Interned values of those columns.
        lane_names: Thread names by (pid, tid).
        comm_args: By row over all blocks.
        stream_waits: By correlation of the call that let a stream wait.
        comm_rank: The "Rank" argument of collective operators with their arguments, each pair once.
        halves: Begin and End events in file order.
        counts: What was left out.
        rows: Events collected.

    """

    blocks: list[Columns] = field(default_factory=list)
    names: NameInterner = field(default_factory=NameInterner)
    categories: NameInterner = field(default_factory=NameInterner)
    lanes: Interner = field(default_factory=Interner)
    lane_names: dict[tuple[str, str], str] = field(default_factory=dict)
    comm_args: dict[int, CommArgs] = field(default_factory=dict)
    stream_waits: dict[int, StreamWait] = field(default_factory=dict)
    comm_rank: dict[tuple[int, CommArgs], None] = field(default_factory=dict)
    halves: list[Any] = field(default_factory=list)
    counts: Counts = field(default_factory=Counts)
    rows: int = 0
    _comm_names: set[int] = field(default_factory=set)
    _names_checked: int = 0

    def take(self, events: list[Any]) -> bool:
        """Adds a block's events; False asks for the block with the times as text (nothing was added then)."""
        spans = [event for event in events if type(event) in _SPAN_TYPES]
        if not self.add_spans(spans):
            return False
        if len(spans) < len(events):
            for event in events:
                if type(event) is schema.Metadata:
                    self._take_metadata(event)
                elif isinstance(event, schema.Begin | schema.End):
                    self.halves.append(_detached(event))
        return True

    def add_spans(self, spans: list[Any]) -> bool:
        """Adds complete events; False where their times need the text."""
        if not spans:
            return True
        start = _times([span.ts for span in spans])
        duration = _times([span.dur for span in spans]) if start else None
        if start is None or duration is None:
            return False
        kept = self._acceptable(spans, start, duration)
        if not kept.all():
            spans = [span for span, keep in zip(spans, kept, strict=True) if keep]
        self.add_rows(spans, start[0][kept], duration[0][kept])
        return True

    def add_rows(self, spans: list[Any], start_ns: Int64, dur_ns: Int64) -> None:
        """Adds events whose times are known."""
        args = [span.args or _NO_ARGS for span in spans]
        name = np.array([self.names[span.name or ""] for span in spans], dtype=np.int32)
        lane_keys = [(span.pid, span.tid) for span in spans]
        try:
            lane = [self.lanes[key] for key in lane_keys]
        except TypeError:  # a list for a pid
            lane = [self.lanes[_lane_key(*key)] for key in lane_keys]
        self._collect_comm_args(spans, args, name)
        self._collect_stream_waits(spans, args)
        external = int64_column([arg.external_id for arg in args])
        old_external = int64_column([arg.old_external_id for arg in args])
        size = int64_column([arg.bytes for arg in args])
        old_size = int64_column([arg.old_bytes for arg in args])
        device = int64_column([arg.device for arg in args])
        self.blocks.append(
            Columns(
                start_ns=start_ns,
                dur_ns=dur_ns,
                name=name,
                category=np.array([self.categories[span.cat or ""] for span in spans], dtype=np.int32),
                lane=np.array(lane, dtype=np.int32),
                correlation=int64_column([arg.correlation for arg in args]),
                external_id=np.where(external < 0, old_external, external),
                size_bytes=np.where(size < 0, old_size, size),
                device=np.clip(device, -1, 1 << 30).astype(np.int32),
                stream=int64_column([arg.stream for arg in args]),
            )
        )
        self.rows += len(spans)

    def _acceptable(
        self, spans: list[Any], start: tuple[Int64, Flags], duration: tuple[Int64, Flags]
    ) -> Flags:
        """Which events have usable times; the others are counted by reason."""
        (start_ns, start_readable), (dur_ns, dur_readable) = start, duration
        kept: Flags = start_readable
        if not dur_readable.all():
            for row in np.flatnonzero(~dur_readable):
                if _is_absent(spans[row].dur):
                    dur_readable[row] = True
                    self.counts.missing_duration += 1
        kept = kept & dur_readable
        kept &= np.abs(start_ns) < timestamps.MAX_US * 1000 - np.abs(dur_ns)
        self.counts.unreadable_time += int((~kept).sum())
        negative = kept & (dur_ns < 0)
        self.counts.negative_duration += int(negative.sum())
        empty = kept & (start_ns == 0) & (dur_ns == 0)
        for row in np.flatnonzero(empty):
            empty[row] = to_int((spans[row].args or _NO_ARGS).stream) is not None
        self.counts.empty_gpu_event += int(empty.sum())
        usable: Flags = kept & ~negative & ~empty
        return usable

    def _collect_comm_args(self, spans: list[Any], args: list[schema.Args], name: Int32) -> None:
        if len(self.names) > self._names_checked:
            fresh = list(self.names)[self._names_checked :]
            self._comm_names.update(self.names[text] for text in fresh if is_comm_name(text))
            self._names_checked = len(self.names)
        rows = [row for row, arg in enumerate(args) if arg.collective is not None]
        if self._comm_names:
            rows = sorted({*rows, *np.flatnonzero(np.isin(name, list(self._comm_names))).tolist()})
        for row in rows:
            parsed, possible = parse_comm_args(args[row], spans[row].name or "")
            self.counts.impossible_comm_args += not possible
            if parsed is None:
                continue
            self.comm_args[self.rows + row] = parsed
            rank = to_int(args[row].rank)
            if rank is not None:
                self.comm_rank[rank, parsed] = None

    def _collect_stream_waits(self, spans: list[Any], args: list[schema.Args]) -> None:
        """Event synchronisations of the host carry the same arguments: these have another name."""
        for row in [row for row, arg in enumerate(args) if arg.waited_record != MISSING]:
            if spans[row].name != STREAM_WAIT:
                continue
            told, arg = [], args[row]
            for value in (arg.correlation, arg.stream, arg.waited_stream, arg.waited_record):
                number = to_int(value)
                told.append(MISSING if number is None else number)
            if min(told) >= 0:
                self.stream_waits[told[0]] = StreamWait(*told[1:])

    def _take_metadata(self, event: schema.Metadata) -> None:
        if event.name == "thread_name" and event.args and isinstance(event.args.name, str):
            self.lane_names[_lane_key(event.pid, event.tid)] = shortened(event.args.name)


def lane_text(value: Any) -> str:
    """A pid or tid as text; JSON numbers and strings of the same digits are the same lane."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        value = int(value)
    return "" if value is None else shortened(str(value), _MAX_LANE_LENGTH)


def _lane_key(pid: Any, tid: Any) -> tuple[str, str]:
    return lane_text(pid), lane_text(tid)


def _times(values: list[Any]) -> tuple[Int64, Flags] | None:
    if values and any(type(value) is msgspec.Raw for value in (values[0], values[-1])):
        return timestamps.from_texts([bytes(value) for value in values])
    if None in values:
        return None
    return timestamps.from_numbers(values)


def _is_absent(duration: Any) -> bool:
    return bytes(duration).strip() in (b"", b"null") if duration is not None else True


def _detached(event: Any) -> Any:
    """Frees the block's text, to which the raw fields of a kept event would hold on."""
    if type(event.ts) is msgspec.Raw:
        event.ts = event.ts.copy()
    args = getattr(event, "args", None)
    if args is not None:
        args.input_dims, args.old_input_dims, args.input_type = (
            raw.copy() for raw in (args.input_dims, args.old_input_dims, args.input_type)
        )
    return event
