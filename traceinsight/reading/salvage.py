"""The careful path: a stretch of broken JSON, event by event.

Every repair keeps the length of the text, so an offset found in repaired text is an offset in the file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from traceinsight.reading import schema

# An event starts at a brace with a familiar first key, behind a closing brace or a comma.
# Possessive quantifiers throughout: without them a megabyte of blanks would be searched in quadratic time.
_BOUNDARY = re.compile(
    rb'(?:\}\s*+(?:,\s*+)?|,\s*+)(?=\{\s*+"(?:ph|name|cat|ts|dur|pid|tid|args|id|bp|s)"\s*+:)'
)
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
# A string that is not closed ends with the text: otherwise every quote in it would be searched to the end.
_STRING = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+(?:"|\\?\Z)', re.DOTALL)
_STRING_OR_WORD = re.compile(_STRING.pattern + rb"|[\w+\-][\w/.+\-]*+", re.DOTALL)
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_ODD_WORD = re.compile(  # anything but a number, true, false and null
    rb"(?<![\w/.+\-])(?!(?:true|false|null|" + _NUMBER.pattern + rb")(?![\w/.+\-]))[\w+\-]"
)
_NAME_OPENS = re.compile(rb'"name"\s*+:\s*+"')
_NAME_CLOSES = re.compile(rb'"\s*+,\s*+"(?:ph|cat|pid|tid|ts|dur|args|id|s|bp)"\s*+:')
_INNER_QUOTE = re.compile(rb'(?<![{,:\[\s\\])"(?!\s*[:,}\]])')
_BAD_ESCAPE = re.compile(rb'\\(?!["\\/bfnrt]|u[0-9a-fA-F]{4})')
_LONE_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F][0-9a-fA-F]{2}")
_SEPARATORS = b", \t\r\n\0"
_CONTROL_TO_SPACE = bytes(32 if code < 32 else code for code in range(256))
_MAX_JOINED_PIECES = 4
_MAX_FAILURES = 2000  # per block; where so many repairs failed, the next would fail too
_MAX_REPAIRED_BYTES = 1 << 20  # no event is longer; keeps the repairs' cost bounded on garbage

DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError)
"""All a decoder may raise on hostile text (msgspec's errors are ValueErrors; listed for the reader)."""


@dataclass(slots=True)
class Salvaged:
    """What could be made of a stretch of text.

    Attributes:
        events: Decoded events, in order.
        lost: Pieces that looked like an event and could not be read.
        repaired: Events that needed a repair.
        end: Offset behind the array's closing bracket, or None while it stays open.
        used: Offset up to which the text was dealt with.
        first_problem: Offset of the first event that did not decode as it stood.
        helpful: The repair that worked last. A writer makes the same mistake again and again: tried first, it
            spares the next event all attempts that did not help this one.

    """

    events: list[Any] = field(default_factory=list)
    lost: int = 0
    repaired: int = 0
    end: int | None = None
    used: int = 0
    first_problem: int | None = None
    helpful: Callable[[bytes], bytes] | None = None


def end_of_value(error: Exception, prefix_bytes: int) -> int | None:
    """Where the first JSON value ended when a decoder complained about text behind it.

    msgspec names the byte after the first one it did not expect, counting the ``prefix_bytes`` we put first.
    """
    found = _TRAILING.search(str(error))
    return int(found[1]) - 1 - prefix_bytes if found else None


def soothe(text: bytes) -> bytes:
    """Repairs that keep the structure: encoding, control characters, escapes, bare words for values."""
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        decoded = text.decode("utf-8", "surrogateescape")
        text = re.sub("[\udc80-\udcff]", "?", decoded).encode("utf-8")
    text = _BAD_ESCAPE.sub(b"/", text.translate(_CONTROL_TO_SPACE))
    if _ODD_WORD.search(_STRING.sub(b"", text)):  # a call per word is ten times the cost of this look
        text = _STRING_OR_WORD.sub(_quote_bare_word, text)
    return _LONE_SURROGATE.sub(b"??????", text)


def _quote_bare_word(found: re.Match[bytes]) -> bytes:
    word = found[0]
    if word[:1] == b'"' or word in (b"true", b"false", b"null") or _NUMBER.fullmatch(word):
        return word
    return b'""'.ljust(len(word)) if len(word) > 1 else word


def salvage(text: bytes, final: bool) -> Salvaged:
    """Reads what can be read of ``text``, which starts at an event and, if not ``final``, may end in one."""
    result = Salvaged()
    starts = [0, *(found.end() for found in _BOUNDARY.finditer(text))]
    piece = 0
    while piece < len(starts) and result.end is None:
        piece += _salvage_piece(text, starts, piece, final, result)
    if result.end is not None:
        result.used = result.end
    elif final and text[result.used :].strip(_SEPARATORS):
        _remember_problem(result, result.used)
        result.lost += 1
        result.used = len(text)
    return result


def _salvage_piece(text: bytes, starts: list[int], piece: int, final: bool, result: Salvaged) -> int:
    """Reads the event at ``starts[piece]`` and returns how many pieces it took."""
    start = starts[piece]
    repairs = _REPAIRS
    may_go_on = not final and piece + _MAX_JOINED_PIECES >= len(starts)  # behind the end of the text
    if may_go_on or result.lost > _MAX_FAILURES or text[start : start + 1] != b"{":
        repairs = _REPAIRS[:1]
    elif result.helpful is not None:
        taken = _read_with(bytes, text, starts, piece, result, most=1)
        taken = taken or _read_with(result.helpful, text, starts, piece, result, most=1)
        if taken:
            return taken
    for repair in repairs:
        taken = _read_with(repair, text, starts, piece, result)
        if taken:
            return taken
    if may_go_on:
        return len(starts)  # nothing is lost yet; `used` stays before this event
    is_last = piece + 1 == len(starts)
    rest = text[start:].strip(_SEPARATORS) if is_last else b"?"
    if rest.startswith(b"]"):
        result.end = text.index(b"]", start) + 1
    elif rest:
        _remember_problem(result, start)
        result.lost += 1
    result.used = len(text) if is_last else starts[piece + 1]
    return 1


def _read_with(
    repair: Callable[[bytes], bytes],
    text: bytes,
    starts: list[int],
    piece: int,
    result: Salvaged,
    most: int = _MAX_JOINED_PIECES,
) -> int:
    """Decodes the piece, with the next few where it was split inside an event; returns how many."""
    start = starts[piece]
    for after in range(piece + 1, min(piece + most, len(starts)) + 1):
        stop = starts[after] if after < len(starts) else len(text)
        if stop - start > _MAX_REPAIRED_BYTES and (after > piece + 1 or repair is not bytes):
            break
        outcome = _decode_one(repair(text[start:stop]))
        if outcome is None:
            continue
        if repair is not bytes:
            result.repaired += 1
            result.helpful = repair
            _remember_problem(result, start)
        _accept(outcome, start, stop, result)
        if result.end is None and after == len(starts) and outcome[2].strip(_SEPARATORS):
            result.used = start + outcome[1]  # the next event has begun, but not enough of it to be seen
        return after - piece
    return 0


def _remember_problem(result: Salvaged, offset: int) -> None:
    if result.first_problem is None:
        result.first_problem = offset


def _accept(outcome: tuple[Any, int, bytes], start: int, stop: int, result: Salvaged) -> None:
    event, length, rest = outcome
    if event is not None:
        result.events.append(event)
    result.used = stop
    if rest.startswith(b"]"):
        result.end = start + length + 1


def _decode_one(piece: bytes) -> tuple[Any, int, bytes] | None:
    """The event at the start of ``piece`` (None if it is none), the offset of what follows, and that text."""
    stripped = piece.rstrip(_SEPARATORS)
    try:
        return schema.exact_event.decode(stripped), len(piece), b""
    except DECODE_ERRORS as error:
        end = end_of_value(error, 0)
        if end is None:
            return (
                _decode_loosely(stripped, len(piece)) if isinstance(error, msgspec.ValidationError) else None
            )
    rest = piece[end:]
    try:
        return schema.exact_event.decode(piece[:end]), end, rest
    except msgspec.ValidationError:
        loose = _decode_loosely(piece[:end], end)
        return (loose[0], end, rest) if loose else None
    except DECODE_ERRORS:
        return None


def _decode_loosely(text: bytes, length: int) -> tuple[Any, int, bytes] | None:
    """An event with a field of an unexpected type: keeps the fields that have the right one."""
    try:
        fields = json.loads(text, strict=False, parse_int=_NumberText, parse_float=_NumberText)
    except DECODE_ERRORS as error:
        end = getattr(error, "pos", None)
        if not isinstance(error, json.JSONDecodeError) or error.msg != "Extra data" or end is None:
            return None
        head = text.decode("utf-8", "replace")[:end].encode()
        loose = _decode_loosely(head, len(head))
        return (loose[0], len(head), text[len(head) :].lstrip()) if loose else None
    if not isinstance(fields, dict):
        return None, length, b""
    return _event_of(fields), length, b""


class _NumberText(str):
    """A number as written, told from a string that looks like one."""

    __slots__ = ()


def _event_of(fields: dict[str, Any]) -> Any:
    kinds = {"X": schema.ExactSpan, "B": schema.ExactBegin, "E": schema.ExactEnd}
    kind = kinds.get(str(fields.get("ph")))
    if kind is None:
        return None
    event = kind()
    for key in ("ts", "dur"):
        if hasattr(event, key) and isinstance(fields.get(key), str):
            setattr(event, key, msgspec.Raw(str(fields[key]).encode("utf-8", "replace")))
    for key in ("name", "cat"):
        if hasattr(event, key) and isinstance(fields.get(key), str):
            setattr(event, key, str(fields[key]).encode("utf-8", "replace").decode())
    for key in ("pid", "tid"):
        setattr(event, key, fields.get(key))
    if hasattr(event, "args") and isinstance(fields.get("args"), dict):
        event.args = _args_of(fields["args"])
    return event


def _args_of(fields: dict[str, Any]) -> schema.Args:
    args = schema.Args()
    for encoded in msgspec.structs.fields(schema.Args):
        if encoded.encode_name not in fields:
            continue
        value = fields[encoded.encode_name]
        if encoded.type is msgspec.Raw:
            value = msgspec.Raw(json.dumps(value).encode())
        setattr(args, encoded.name, value)
    return args


def _repair_name(piece: bytes) -> bytes:
    """Quotes inside the name become apostrophes; only a name is likely to hold source code."""
    piece = piece.translate(_CONTROL_TO_SPACE)
    opens = _NAME_OPENS.search(piece)
    closes = _NAME_CLOSES.search(piece, opens.end()) if opens else None
    if not opens or not closes:
        return piece
    name = re.sub(rb'(?<!\\)"', b"'", piece[opens.end() : closes.start()])
    return soothe(piece[: opens.end()] + name + piece[closes.start() :])


def _repair_quotes(piece: bytes) -> bytes:
    """Any quote that neither opens nor closes a string, judged by its neighbours, becomes an apostrophe."""
    return soothe(_INNER_QUOTE.sub(b"'", _repair_name(piece)))


_REPAIRS: tuple[Callable[[bytes], bytes], ...] = (bytes, soothe, _repair_name, _repair_quotes)
"""From none to the most daring."""
