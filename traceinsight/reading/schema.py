"""The few fields of a trace event we decode, as msgspec types. Everything else in the file is skipped unread.

Field types are loose on purpose: a string where a number belongs must not fail the block, it is sorted out in
the columns. ``Exact*`` types keep the text of the time fields, for files whose times do not fit a float64.
"""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any

import msgspec

from traceinsight.trace.recording import MISSING

NO_TEXT = msgspec.Raw(b"")


class Args(msgspec.Struct, gc=False):
    """The keys of ``args`` that matter."""

    correlation: Any = MISSING
    external_id: Any = msgspec.field(default=MISSING, name="External id")
    old_external_id: Any = msgspec.field(default=MISSING, name="external id")
    device: Any = MISSING
    stream: Any = MISSING
    bytes: Any = MISSING
    old_bytes: Any = msgspec.field(default=MISSING, name="Bytes")
    collective: Any = msgspec.field(default=None, name="Collective name")
    in_elements: Any = msgspec.field(default=None, name="In msg nelems")
    out_elements: Any = msgspec.field(default=None, name="Out msg nelems")
    group_size: Any = msgspec.field(default=None, name="Group size")
    dtype: Any = None
    in_split: Any = msgspec.field(default=None, name="In split size")
    out_split: Any = msgspec.field(default=None, name="Out split size")
    group_name: Any = msgspec.field(default=None, name="Process Group Name")
    group_description: Any = msgspec.field(default=None, name="Process Group Description")
    group_ranks: Any = msgspec.field(default=None, name="Process Group Ranks")
    sequence: Any = msgspec.field(default=None, name="Seq")
    peer_src: Any = msgspec.field(default=None, name="Src Rank")
    peer_dst: Any = msgspec.field(default=None, name="Dst Rank")
    rank: Any = msgspec.field(default=None, name="Rank")
    waited_stream: Any = msgspec.field(default=MISSING, name="wait_on_stream")
    waited_record: Any = msgspec.field(default=MISSING, name="wait_on_cuda_event_record_corr_id")
    input_dims: msgspec.Raw = msgspec.field(default=NO_TEXT, name="Input Dims")
    old_input_dims: msgspec.Raw = msgspec.field(default=NO_TEXT, name="Input dims")
    input_type: msgspec.Raw = msgspec.field(default=NO_TEXT, name="Input type")


class MetadataArgs(msgspec.Struct, gc=False):
    """What a metadata event says."""

    name: Any = None
    labels: Any = None


class Span(msgspec.Struct, gc=False, tag_field="ph", tag="X"):
    """A complete event."""

    name: str | None = None
    cat: str | None = None
    ts: Any = None
    dur: Any = None
    pid: Any = None
    tid: Any = None
    args: Args | None = None


class Begin(msgspec.Struct, gc=False, tag_field="ph", tag="B"):
    """The begin of a span whose end is another event."""

    name: str | None = None
    cat: str | None = None
    ts: Any = None
    pid: Any = None
    tid: Any = None
    args: Args | None = None


class End(msgspec.Struct, gc=False, tag_field="ph", tag="E"):
    """The end of the innermost open :class:`Begin` of the same thread."""

    ts: Any = None
    pid: Any = None
    tid: Any = None


class Metadata(msgspec.Struct, gc=False, tag_field="ph", tag="M"):
    """A thread or process name."""

    name: str | None = None
    pid: Any = None
    tid: Any = None
    args: MetadataArgs | None = None


class ExactSpan(Span, gc=False, tag_field="ph", tag="X"):
    """:class:`Span` with the times as text."""

    ts: msgspec.Raw = NO_TEXT
    dur: msgspec.Raw = NO_TEXT


class ExactBegin(Begin, gc=False, tag_field="ph", tag="B"):
    """:class:`Begin` with the time as text."""

    ts: msgspec.Raw = NO_TEXT


class ExactEnd(End, gc=False, tag_field="ph", tag="E"):
    """:class:`End` with the time as text."""

    ts: msgspec.Raw = NO_TEXT


# Flow, instant, counter, async, object, ...: known, so that they decode, and empty, so that they are cheap.
_IGNORED_PHASES = "sftiICbneSTFpPNODVvaRc()"
_IGNORED = tuple(
    msgspec.defstruct(f"Ignored{ord(phase)}", [], tag_field="ph", tag=phase, gc=False)
    for phase in _IGNORED_PHASES
)

Event = Span | Begin | End | Metadata
_FAST = reduce(or_, (Span, Begin, End, Metadata, *_IGNORED))
_EXACT = reduce(or_, (ExactSpan, ExactBegin, ExactEnd, Metadata, *_IGNORED))

fast_events: msgspec.json.Decoder[list[Any]] = msgspec.json.Decoder(list[_FAST])  # type: ignore[valid-type]
exact_events: msgspec.json.Decoder[list[Any]] = msgspec.json.Decoder(list[_EXACT])  # type: ignore[valid-type]
exact_event: msgspec.json.Decoder[Any] = msgspec.json.Decoder(_EXACT)
any_value: msgspec.json.Decoder[Any] = msgspec.json.Decoder()
