"""An independent reading of a whole trace: the standard library's JSON with decimal numbers."""

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path


def decimal_events(path: Path) -> list[dict]:
    raw = path.read_bytes()
    text = gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw
    trace = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    base_us = Decimal(0)
    events = trace
    if isinstance(trace, dict):
        events = trace["traceEvents"]
        base_us = Decimal(trace.get("baseTimeNanoseconds", 0)) / 1000
    found = []
    for event in events:
        if event.get("ph") != "X" or event.get("cat") == "Trace":
            continue
        start, duration = base_us + Decimal(event["ts"]), Decimal(event["dur"])
        found.append({**event, "start_ns": start * 1000, "end_ns": (start + duration) * 1000})
    return found


def times_by_identity(events: list[dict]) -> dict[tuple, list[tuple[Decimal, Decimal]]]:
    """(start, end) of all events of one name, lane and correlation, sorted."""
    by_identity: dict[tuple, list] = {}
    for event in events:
        correlation = int(event.get("args", {}).get("correlation", -1))
        key = (event["name"], str(event["pid"]), str(event["tid"]), correlation)
        by_identity.setdefault(key, []).append((event["start_ns"], event["end_ns"]))
    return {key: sorted(times) for key, times in by_identity.items()}


def recorded_times(recording) -> dict[tuple, list[tuple[int, int]]]:
    """The same of a recording."""
    events = recording.events
    by_identity: dict[tuple, list] = {}
    columns = zip(
        events.name.tolist(),
        events.lane.tolist(),
        events.correlation.tolist(),
        events.start_ns.tolist(),
        events.end_ns.tolist(),
        strict=True,
    )
    for name, lane, correlation, start, end in columns:
        place = recording.lanes[lane]
        by_identity.setdefault((recording.strings[name], place.pid, place.tid, correlation), []).append(
            (start, end)
        )
    return {key: sorted(times) for key, times in by_identity.items()}


def category_counts(events: list[dict]) -> Counter:
    return Counter(event.get("cat", "") for event in events)
