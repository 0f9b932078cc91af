"""Reads one file into a recording, or says why it cannot."""

from __future__ import annotations

import gc
import re
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from traceinsight.base.errors import UnreadableInputError
from traceinsight.base.notes import DataNote, Severity
from traceinsight.reading.archives import Archives, fault_of, is_zip, packed_with
from traceinsight.reading.bytestream import TextStream
from traceinsight.reading.columns import Collector
from traceinsight.reading.diagnosis_file import OUR_REPORT
from traceinsight.reading.events import EventReader
from traceinsight.reading.header import Header, parse_header
from traceinsight.reading.limits import LIMITS, Limits
from traceinsight.reading.overruns import clip_overruns
from traceinsight.reading.ranks import find_host, find_rank, find_world_size
from traceinsight.reading.sources import Source
from traceinsight.reading.spans_from_halves import pair_halves
from traceinsight.reading.table import Table, build_table, with_durations
from traceinsight.reading.texts import MAX_NAME_LENGTH
from traceinsight.trace.recording import Recording

NO_TRACE_CODES = frozenset({"not-a-trace", "exported-trace"})
"""Codes of the notes on files that never were the trace of a rank."""

_EXPORT_HEAD = re.compile(rb'\{"displayTimeUnit": "ns", "otherData": \{[^}]*"traceinsight": "')

TRUTH_NAME = "truth.json"
"""What really happened in a simulated run, beside its traces: known, and no matter for a note."""

_TRUTH_HEAD = re.compile(rb'\{"schema_version":\d+,"simulated":true,"spec":\{')


@dataclass(frozen=True, slots=True)
class FileOutcome:
    """A recording, or a note on why there is none; neither for what belongs beside traces."""

    source: Source
    recording: Recording | None
    notes: tuple[DataNote, ...] = ()


def read_file(
    source: Source,
    given_rank: int | None = None,
    limits: Limits = LIMITS,
    archives: Archives | None = None,
) -> FileOutcome:
    """Never raises for what is in the file.

    Args:
        source: What to read.
        given_rank: The rank, where the user told it; it wins over what the file says.
        limits: What the file may cost.
        archives: Shared by the calls for many members of one archive.

    """
    try:
        # Decoding makes millions of short-lived objects without cycles; the collector would only scan them.
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            with nullcontext(archives) if archives is not None else Archives() as opened:
                return _read(source, given_rank, limits, opened)
        finally:
            if was_enabled:
                gc.enable()
    except UnreadableInputError as error:
        return _failed(source, "unreadable-file", f"{error.what} {error.what_to_do or ''}".strip())
    except OSError as error:
        return _failed(source, "unreadable-file", f"cannot be opened: {error.strerror or error}.")
    except MemoryError:
        return _failed(
            source, "unreadable-file", "does not fit the memory of this machine. Capture fewer steps."
        )
    except Exception as error:  # zipfile and remote file systems raise what they like
        return _failed(source, "unreadable-file", f"cannot be read ({type(error).__name__}: {error}).")


def _failed(source: Source, code: str, message: str, severity: Severity = "error") -> FileOutcome:
    return FileOutcome(
        source, None, (DataNote(severity, code, f"{source.name} {message}", file=source.name),)
    )


def _read(source: Source, given_rank: int | None, limits: Limits, archives: Archives) -> FileOutcome:
    collector = Collector()
    reader = EventReader(limits, collector.take)
    with source.open(archives) as (raw, packed_size):
        stream = TextStream(raw, source.name, limits, packed_size)
        reader.read(stream.blocks())
    if stream.text_bytes == 0:
        why = stream.damage or "the file has 0 bytes"
        return _failed(source, "empty-file", f"holds no data ({why}). Capture it again.")
    if _TRUTH_HEAD.match(stream.head) and source.name.endswith(TRUTH_NAME) and not source.explicit:
        return FileOutcome(source, None)
    if _EXPORT_HEAD.match(stream.head):
        message = "was written by traceinsight export; skipped: the traces it was made of are to be read."
        return _failed(source, "exported-trace", message, "info")
    unpaired = pair_halves(collector)
    if collector.rows == 0:
        return _without_events(source, reader, stream)
    header = parse_header(bytes(reader.outside))
    table = build_table(collector, header.base_ns)
    if len(table.events) == 0:
        return _without_events(source, reader, stream)
    table, clipped = _clip(table)
    notes = [
        *_reading_notes(reader, stream, header, limits),
        *_event_notes(table, clipped, unpaired, collector.names.cut),
    ]
    return FileOutcome(source, _recording(source, header, table, collector, notes, given_rank))


def _without_events(source: Source, reader: EventReader, stream: TextStream) -> FileOutcome:
    if reader.surplus:
        return _failed(source, "no-events", f"has {reader.arrays} lists of events and more, all empty.")
    if reader.arrays == 0 or (reader.hopeless and not reader.lost):
        if stream.damage:
            return _failed(source, "unreadable-file", f"holds no event: {stream.damage}.")
        packed = _packed(source, stream)
        if packed is not None:
            return packed
        what = "a report that traceinsight wrote" if OUR_REPORT.search(stream.head) else "no profiler trace"
        return _failed(source, "not-a-trace", f"is {what} (no trace events in it); skipped.", "info")
    where = (
        f" first problem at byte {reader.first_problem} of its text;"
        if reader.first_problem is not None
        else ""
    )
    lost = f" {reader.lost} events were unreadable;" if reader.lost else ""
    return _failed(source, "no-events", f"holds no duration events;{lost}{where} nothing to analyse in it.")


def _packed(source: Source, stream: TextStream) -> FileOutcome | None:
    """What to say of an archive or a packed file that could not be looked into."""
    tool = packed_with(stream.head)
    if tool is not None:
        again = "once more, " if stream.gzipped else ""
        return _failed(source, "unreadable-file", f"is packed {again}with {tool}; unpack it first.")
    if not is_zip(stream.head):
        return None
    if source.member or stream.gzipped or source.is_pipe:
        outer = "inside an archive" if source.member else "in gzip" if stream.gzipped else "from a pipe"
        return _failed(source, "unreadable-file", f"is a zip archive {outer}; unpack it first.")
    fault = fault_of(source.path)
    if fault is None:
        return _failed(source, "not-a-trace", "is a zip archive without a trace in it; skipped.", "info")
    return _failed(
        source, "unreadable-file", f"is a damaged zip archive ({fault.rstrip('.')}). Copy it again."
    )


def _clip(table: Table) -> tuple[Table, int]:
    dur_ns, clipped = clip_overruns(table.events, table.lanes)
    if not len(clipped):
        return table, 0
    events, order = with_durations(table.events, dur_ns)
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    comm_args = {int(place[row]): args for row, args in table.comm_args.items()}
    return replace(table, events=events, comm_args=dict(sorted(comm_args.items()))), len(clipped)


def _recording(
    source: Source,
    header: Header,
    table: Table,
    collector: Collector,
    notes: list[DataNote],
    given_rank: int | None,
) -> Recording:
    rank, rank_source = find_rank(header, collector.comm_rank, source.name, given_rank)
    return Recording(
        file=source.name,
        rank=rank,
        rank_source=rank_source,
        world_size=find_world_size(header, table.comm_args.values()),
        backend=header.backend,
        host=find_host(header, source.name),
        devices=header.devices,
        process_groups=header.process_groups,
        strings=table.strings,
        lanes=table.lanes,
        events=table.events,
        comm_args=table.comm_args,
        stream_waits=collector.stream_waits,
        metadata=header.metadata,
        notes=tuple(replace(note, rank=rank, file=source.name) for note in notes),
    )


def _reading_notes(reader: EventReader, stream: TextStream, header: Header, limits: Limits) -> list[DataNote]:
    notes = []
    where = (
        f"; the first problem is at byte {reader.first_problem} of the text"
        if reader.first_problem is not None
        else ""
    )
    if stream.damage or not reader.closed:
        why = stream.damage or f"the text stops inside the events after {stream.text_bytes} bytes"
        notes.append(
            _note(
                "error",
                "truncated-file",
                f"The file is cut off ({why}): events and metadata after it are missing.",
            )
        )
    if reader.surplus:
        message = (
            f"The text holds more than {limits.max_arrays} lists of events{where}; the rest was not read."
        )
        notes.append(_note("error", "too-many-event-lists", message))
    if reader.lost:
        message = f"At least {reader.lost} events could not be read{where}."
        notes.append(_note("error", "lost-events", message, reader.lost))
    if reader.repaired:
        message = f"{reader.repaired} events were read after repairing their text{where}."
        notes.append(_note("warning", "repaired-events", message, reader.repaired))
    if not header.complete and reader.closed and not stream.damage and not reader.surplus:
        notes.append(
            _note("warning", "broken-header", "The text around the events is broken JSON; read key by key.")
        )
    for field, given in header.impossible.items():
        message = f"The file gives {given} for its {field.replace('_', ' ')}, which cannot be; not used."
        notes.append(_note("warning", f"impossible-{field.replace('_', '-')}", message, 1))
    return notes


_Entry = tuple[int, Severity, str, str]


def _event_notes(table: Table, clipped: int, unpaired: int, cut: int) -> list[DataNote]:
    counts = table.counts
    entries: list[_Entry] = [
        (counts.unreadable_time, "error", "unreadable-time", "events without a usable time were left out"),
        (
            counts.negative_duration,
            "error",
            "negative-duration",
            "events with a negative duration were left out",
        ),
        (counts.missing_duration, "warning", "missing-duration", "events without a duration count as 0 long"),
        (
            counts.empty_gpu_event,
            "error",
            "lost-gpu-events",
            "GPU events lost their times (0, 0) and were left out",
        ),
        (
            table.duplicates,
            "warning",
            "duplicate-events",
            "events were in the file more than once; the copies were dropped",
        ),
        (unpaired, "warning", "unpaired-events", "begin or end events had no partner and were left out"),
        (
            clipped,
            "warning",
            "impossible-duration",
            "GPU events ran over the next on their stream and were cut there",
        ),
        (
            counts.impossible_comm_args,
            "warning",
            "unusable-collective-args",
            "events give a collective's sizes or ranks that cannot be; those count as not recorded",
        ),
        (
            cut,
            "info",
            "cut-names",
            f"events have names over {MAX_NAME_LENGTH} characters, cut there; a checksum keeps them apart",
        ),
    ]
    return [
        _note(severity, code, f"{count} {text}.", count) for count, severity, code, text in entries if count
    ]


def _note(
    severity: Literal["info", "warning", "error"], code: str, message: str, count: int | None = None
) -> DataNote:
    return DataNote(severity, code, message, count=count)
