"""Pairs ``B`` and ``E`` events, which old or foreign writers use in place of complete events."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from traceinsight.reading import schema, timestamps
from traceinsight.reading.columns import Collector, lane_text


def pair_halves(collector: Collector) -> int:
    """Adds the spans the halves make up; returns how many halves found no partner."""
    halves = collector.halves
    if not halves:
        return 0
    texts = [bytes(half.ts) if type(half.ts) is msgspec.Raw else repr(half.ts).encode() for half in halves]
    times, readable = timestamps.from_texts(texts)
    open_by_lane: dict[tuple[str, str], list[int]] = {}
    spans: list[schema.Span] = []
    starts: list[int] = []
    durations: list[int] = []
    # A stable sort by time: at equal times the order of the file says what is inside what.
    for index in np.argsort(times, kind="stable").tolist():
        half = halves[index]
        if not readable[index]:
            continue
        stack = open_by_lane.setdefault((lane_text(half.pid), lane_text(half.tid)), [])
        if isinstance(half, schema.Begin):
            stack.append(index)
        elif stack:
            begin = stack.pop()
            spans.append(_span_of(halves[begin]))
            starts.append(int(times[begin]))
            durations.append(int(times[index] - times[begin]))
    if spans:
        collector.add_rows(spans, np.array(starts, dtype=np.int64), np.array(durations, dtype=np.int64))
    return len(halves) - 2 * len(spans)


def _span_of(begin: Any) -> schema.Span:
    return schema.Span(name=begin.name, cat=begin.cat, pid=begin.pid, tid=begin.tid, args=begin.args)
