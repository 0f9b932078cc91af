"""From text blocks to decoded events: finds the event arrays, cuts the text at event boundaries, decodes.

A block is decoded up to its last ``}, {``. Whether that was a boundary between events is decided by the
decoder: text that starts at an event and parses as an array was cut between two of them, since JSON has one
reading only. A cut inside a string or a nested list fails to parse; then earlier cuts are tried, then the
careful path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from traceinsight.reading import schema
from traceinsight.reading.limits import Limits
from traceinsight.reading.salvage import DECODE_ERRORS, end_of_value, salvage, soothe

_ARRAY = re.compile(rb'"traceEvents"\s*+:\s*+\[')
_CUT = re.compile(rb"\}\s*+,\s*+(?=\{)")
_CUT_WINDOW = 1 << 16
_MAX_CUTS_TRIED = 8
_OVERLAP = 256  # what is searched for may straddle two blocks
_BETWEEN_EVENTS = re.compile(rb"[,\s]*+")
_TRUNCATED = "Input data was truncated"

Sink = Callable[[list[Any]], bool]
"""Takes the events of one block; False asks for the same block again with the times as text."""


class EventReader:
    """Feeds every event of a text to ``sink``.

    Attributes:
        outside: The text around the event arrays: ``{... "traceEvents": [], ...}``.
        arrays: How many event arrays were found.
        closed: Whether the last array was closed, that is, whether the text is complete.
        lost: Events that could not be read (at least).
        repaired: Events that could be read after a repair of their text.
        first_problem: Offset of the first problem in the decompressed text.
        hopeless: Whether reading was given up because this cannot be a trace.
        surplus: Whether there were more event arrays than ``limits.max_arrays``; they were not read.

    """

    def __init__(self, limits: Limits, sink: Sink) -> None:
        self.outside = bytearray()
        self.arrays = 0
        self.closed = True
        self.lost = 0
        self.repaired = 0
        self.first_problem: int | None = None
        self.hopeless = False
        self.surplus = False
        self._limits = limits
        self._sink = sink
        self._events = 0
        self._inside = False
        self._exact = False
        self._buffer = b""
        self._offset = 0  # of the buffer in the text
        self._searched = 0  # up to here the buffer holds no cut
        self._careful_from = 0  # length of the buffer from which the careful path is worth another try

    def read(self, blocks: Iterable[bytes]) -> None:
        """Reads all blocks."""
        started = False
        for block in blocks:
            self._buffer += block
            if not started:
                started = self._start()
            if started:
                self._advance(final=False)
            if self.hopeless or self.surplus:
                return
        self._advance(final=True)
        self.closed = not self._inside

    def _start(self) -> bool:
        """Drops leading blanks; a text that opens with a bracket is a bare list of events."""
        blanks = len(self._buffer) - len(self._buffer.lstrip())
        self._drop(blanks)
        if self._buffer.startswith(b"["):
            self._drop(1)
            self._enter()
        self.hopeless = bool(self._buffer) and not self._inside and not self._buffer.startswith(b"{")
        return bool(self._buffer) or self._inside

    def _enter(self) -> None:
        self._inside = True
        self.arrays += 1

    def _leave(self) -> None:
        self._inside = False
        if self.outside:
            self.outside += b"]"

    def _drop(self, count: int) -> None:
        if count:
            self._buffer = self._buffer[count:]
            self._offset += count
            self._searched = 0

    def _advance(self, final: bool) -> None:
        moving = True
        while moving and not (self.hopeless or self.surplus):
            moving = self._take_events(final) if self._inside else self._take_outside(final)

    def _take_outside(self, final: bool) -> bool:
        found = _ARRAY.search(self._buffer)
        if found and self.arrays >= self._limits.max_arrays:
            self.surplus = True
            self._note_problem(found.start())
            return False
        stop = found.end() if found else len(self._buffer) - (0 if final else _OVERLAP)
        if stop <= 0:
            return False
        room = self._limits.max_outside_bytes - len(self.outside)
        self.hopeless = self.arrays == 0 and stop > room
        self.outside += self._buffer[: min(stop, max(room, 0))]
        self._drop(stop)
        if found:
            self._enter()
        return found is not None

    def _take_events(self, final: bool) -> bool:
        """Decodes what is complete in the buffer; True when the array ended, so that other text follows."""
        self._drop(_BETWEEN_EVENTS.match(self._buffer).end())  # type: ignore[union-attr]  # always matches
        if final:
            return bool(self._buffer and self._try(len(self._buffer), b"")) or self._careful(final=True)
        cuts = self._last_cuts()
        if not cuts:
            return self._give_up_on_overlong()
        for cut in cuts:
            outcome = self._try(cut, b"]")
            if outcome is not None:
                return outcome
        return self._careful(final=False)

    def _last_cuts(self) -> list[int]:
        """The last few places where one event may end and the next begin, last first."""
        size = len(self._buffer)
        for begin in sorted({max(self._searched, size - _CUT_WINDOW), self._searched}, reverse=True):
            cuts = [found.start() + 1 for found in _CUT.finditer(self._buffer, begin)]
            if cuts:
                return cuts[: -_MAX_CUTS_TRIED - 1 : -1]
        self._searched = max(size - _OVERLAP, 0)
        return []

    def _give_up_on_overlong(self) -> bool:
        """Without a boundary there is nothing to do but wait for more text, within the limit."""
        if len(self._buffer) <= self._limits.max_event_bytes:
            return False
        if self._careful(final=False):
            return True
        if len(self._buffer) > self._limits.max_event_bytes:
            self._note_problem(0)
            self.lost += 1
            self._drop(len(self._buffer))
        return False

    def _try(self, cut: int, closing: bytes) -> bool | None:
        """Decodes ``buffer[:cut]``; whether the array ended in it, or None if that was no place to cut.

        A text that is broken for another reason goes through the careful path at once.
        """
        text = memoryview(self._buffer)[:cut]  # one copy of the block, not two
        try:
            self._emit(b"".join((b"[", text, closing)))
        except DECODE_ERRORS as error:
            end = end_of_value(error, 1)
            if end is None:
                return None if str(error) == _TRUNCATED else self._careful(final=not closing)
            try:
                self._emit(b"".join((b"[", text[:end])))
            except DECODE_ERRORS:
                return self._careful(final=not closing)
            self._drop(end)
            self._leave()
            return True
        self._drop(cut)
        if not closing:
            self._leave()
        return not closing

    def _emit(self, text: bytes) -> None:
        decoder = schema.exact_events if self._exact else schema.fast_events
        events = decoder.decode(text)
        self._events += len(events)
        if not self._sink(events):
            self._exact = True
            self._sink(schema.exact_events.decode(text))

    def _careful(self, final: bool) -> bool:
        """First repairs of the whole block, for files with one fault everywhere; then piece by piece."""
        if not final and (len(self._buffer) < self._careful_from or self._soothe_block()):
            return False
        # If this gets nowhere, the event is longer than the buffer. Trying again at twice the length keeps
        # the sum of all tries in proportion to the text.
        self._careful_from = 2 * len(self._buffer)
        found = salvage(self._buffer, final)
        if found.events:
            self._sink(found.events)
        self._events += len(found.events)
        self.lost += found.lost
        self.repaired += found.repaired
        if found.first_problem is not None:
            self._note_problem(found.first_problem)
        if found.used:
            self._careful_from = 0
        self._drop(found.used)
        if found.end is not None:
            self._leave()
        self.hopeless = self._events == 0 and not self.outside and not final
        return found.end is not None

    def _soothe_block(self) -> bool:
        cuts = self._last_cuts()
        if not cuts:
            return False
        text = self._buffer[: cuts[0]]
        repaired = soothe(text)
        if repaired == text:
            return False
        try:
            self._emit(b"[" + repaired + b"]")
        except DECODE_ERRORS:
            return False
        self._count_repairs(text, repaired)
        self._drop(cuts[0])
        return True

    def _count_repairs(self, text: bytes, repaired: bytes) -> None:
        """Line ends between events are blanked, too, so blanks count only where nothing else was changed."""
        before, after = np.frombuffer(text, np.uint8), np.frombuffer(repaired, np.uint8)
        changed = np.flatnonzero((before != after) & ~np.isin(before, list(b"\t\n\r")))
        if not len(changed):
            changed = np.flatnonzero(before != after)[:1]
        boundaries = [found.start() for found in _CUT.finditer(repaired)]
        self.repaired += len(np.unique(np.searchsorted(boundaries, changed)))
        self._note_problem(int(changed[0]))

    def _note_problem(self, offset: int) -> None:
        if self.first_problem is None:
            self.first_problem = self._offset + offset
