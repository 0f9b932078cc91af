"""What a trace file says outside its events: ranks, devices, process groups, clock base, versions."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from traceinsight.reading import schema
from traceinsight.reading.comm_args import are_ranks, integer_list
from traceinsight.reading.numbers import MAX_RANKS, to_int
from traceinsight.reading.salvage import soothe
from traceinsight.reading.texts import shortened
from traceinsight.trace.recording import Device, ProcessGroup

_KEY = re.compile(rb'"([A-Za-z_]\w{0,63})"\s*+:\s*+(?=[\[{"\d\-tf])')
_MAX_KEYS_SEARCHED = 2000
_MAX_ENTRIES = 200
_MAX_VALUE_LENGTH = 1000
_MAX_QUOTED = 40
_BOUNDS = {"rank": (0, (1 << 31) - 1), "world_size": (1, MAX_RANKS)}
_MAX_GROUPS = 100_000
_NESTED_FIELDS = {"deviceProperties", "distributedInfo"}
_RAW_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_NOT_METADATA = {"traceEvents", "deviceProperties", "distributedInfo", "baseTimeNanoseconds", "traceName"}


@dataclass(frozen=True, slots=True)
class Header:
    """The parsed header.

    Attributes:
        base_ns: ``baseTimeNanoseconds``, to be added to every time; 0 where absent.
        complete: Whether the text around the events was valid JSON.
        impossible: Which of ``rank`` and ``world_size`` were given and cannot be, with what was given.

    """

    rank: int | None = None
    world_size: int | None = None
    backend: str | None = None
    host: str | None = None
    base_ns: int = 0
    devices: tuple[Device, ...] = ()
    process_groups: tuple[ProcessGroup, ...] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    complete: bool = True
    impossible: Mapping[str, str] = field(default_factory=dict)


def parse_header(outside: bytes) -> Header:
    """Reads the text around the events, as far as it is there."""
    fields, complete = _fields(outside)
    distributed = fields.get("distributedInfo")
    distributed = distributed if isinstance(distributed, dict) else {}
    base = to_int(fields.get("baseTimeNanoseconds"))
    backend = distributed.get("backend")
    host = fields.get("host_name") or fields.get("hostname") or distributed.get("hostname")
    rank, world_size = (_between(distributed.get(key), *bounds) for key, bounds in _BOUNDS.items())
    return Header(
        rank=rank,
        world_size=world_size,
        backend=shortened(backend) if isinstance(backend, str) and backend else None,
        host=shortened(host) if isinstance(host, str) else None,
        base_ns=base if base is not None and 0 <= base < 1 << 62 else 0,
        devices=_devices(fields.get("deviceProperties")),
        process_groups=_process_groups(distributed.get("pg_config")),
        metadata=_metadata({**_prefixed(distributed), **fields}),
        complete=complete,
        impossible={
            key: repr(distributed[key])[:_MAX_QUOTED]
            for key, bounds in _BOUNDS.items()
            if distributed.get(key) is not None and _between(distributed[key], *bounds) is None
        },
    )


def _between(value: object, least: int, most: int) -> int | None:
    number = to_int(value)
    return number if number is not None and least <= number <= most else None


def _fields(outside: bytes) -> tuple[dict[str, Any], bool]:
    if not outside.strip():
        return {}, True
    for repair in (bytes, soothe):
        for closing in (b"", b"]}"):
            try:
                # Values stay undecoded at first: a list as large as the limit would take 50 times its text.
                fields = _RAW_FIELDS.decode(repair(outside) + closing)
                chosen = {
                    key: schema.any_value.decode(raw) for key, raw in fields.items() if _is_wanted(key, raw)
                }
            except (ValueError, RecursionError):
                continue
            return chosen, repair is bytes and not closing
    return _fields_one_by_one(outside.decode("utf-8", "replace")), False


def _is_wanted(key: str, raw: msgspec.Raw) -> bool:
    return key in _NESTED_FIELDS or bytes(memoryview(raw)[:1]) not in (b"[", b"{")


def _fields_one_by_one(text: str) -> dict[str, Any]:
    """Key by key, for a header with a fault somewhere; of several equal keys the first wins."""
    decoder = json.JSONDecoder(strict=False)
    fields: dict[str, Any] = {}
    keys = re.compile(_KEY.pattern.decode())
    position = 0
    for _ in range(_MAX_KEYS_SEARCHED):
        found = keys.search(text, position)
        if not found:
            break
        position = found.end()
        if found[1] == "traceEvents" or (text[position] in "[{" and found[1] not in _NESTED_FIELDS):
            continue
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            continue
        fields.setdefault(found[1], value)
    return fields


def _devices(value: object) -> tuple[Device, ...]:
    devices: dict[int, Device] = {}
    for entry in value if isinstance(value, list) else []:
        ordinal = _between(entry.get("id"), 0, (1 << 31) - 1) if isinstance(entry, dict) else None
        if ordinal is not None:
            devices[ordinal] = Device(
                ordinal=ordinal,
                name=shortened(str(entry.get("name", ""))),
                memory_bytes=to_int(entry.get("totalGlobalMem")),
                sm_count=to_int(entry.get("numSms")),
            )
    return tuple(devices[ordinal] for ordinal in sorted(devices))


def _process_groups(value: object) -> tuple[ProcessGroup, ...]:
    """``pg_config`` is a list of dicts; some versions write it as a string, or as a dict by name."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return ()
    if isinstance(value, dict):
        value = [{"pg_name": name, **entry} for name, entry in value.items() if isinstance(entry, dict)]
    groups = []
    for entry in value[:_MAX_GROUPS] if isinstance(value, list) else []:
        if not isinstance(entry, dict):
            continue
        description = entry.get("pg_desc", entry.get("desc"))
        ranks = integer_list(entry.get("ranks")) or ()
        groups.append(
            ProcessGroup(
                name=shortened(str(entry.get("pg_name", entry.get("name", "")))),
                description=shortened(str(description)) if description not in (None, "") else None,
                ranks=ranks if are_ranks(ranks) else (),
            )
        )
    return tuple(groups)


def _prefixed(distributed: dict[str, Any]) -> dict[str, Any]:
    known = {"rank", "world_size", "backend", "pg_config", "pg_count"}
    return {f"distributedInfo.{key}": value for key, value in distributed.items() if key not in known}


def _metadata(fields: dict[str, Any]) -> dict[str, str]:
    scalars = {
        key[:_MAX_VALUE_LENGTH]: str(value)[:_MAX_VALUE_LENGTH]
        for key, value in fields.items()
        if key not in _NOT_METADATA and isinstance(value, str | int | float)
    }
    return dict(sorted(scalars.items())[:_MAX_ENTRIES])
