"""Long runs of tiny operators on a CPU rank: time of the host that issues them, not of work they do.

An operator costs some microseconds before it computes anything: Python, dispatch, the record of it. One that
lasts no longer than that is nothing but this cost. A few are part of every step; a run of hundreds one after
the other is a rank bound by its host, as on a GPU a queue that runs dry between tiny kernels.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traceinsight.base import intervals
from traceinsight.base.intervals import Spans
from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import EventKind, Int64

TINY_OPERATOR_NS = 10_000
"""An operator whose median call is shorter does less than issuing it costs."""

MIN_RUN = 500
"""Tiny operators one after the other. Steps of healthy jobs have runs of some dozens, 75 at most where this
was measured; 500 cost a millisecond or more."""

MAX_GAP_NS = 100_000
"""Python between two operators of a run; what lasts longer is another matter, and has its own cause."""


def dispatch_spans(trace: RankTrace) -> Spans:
    """When the thread of the steps did nothing but issue tiny operators, gaps included; own clock.

    Operators inside another one are part of it and do not count.
    """
    events = trace.recording.events
    operators = trace.recording.of_kind(EventKind.CPU_OP)
    operators = operators[events.lane[operators] == trace.steps.main_lane]
    outer = operators[_outermost(events.start_ns[operators], events.end_ns[operators])]
    first, last = _runs(_tiny(events.name[outer], events.dur_ns[outer]))
    start, end = events.start_ns[outer], events.end_ns[outer]
    inside = np.zeros(len(outer), dtype=np.bool_)
    for begin, stop in zip(first.tolist(), last.tolist(), strict=True):
        inside[begin:stop] = stop - begin >= MIN_RUN
    chosen = np.flatnonzero(inside)
    following = np.minimum(chosen + 1, len(outer) - 1)
    near = (following > chosen) & inside[following] & (start[following] - end[chosen] <= MAX_GAP_NS)
    return intervals.union(start[chosen], np.where(near, start[following], end[chosen]))


def _outermost(start_ns: Int64, end_ns: Int64) -> NDArray[np.bool_]:
    """Which events lie in no earlier one."""
    outer = np.ones(len(start_ns), dtype=np.bool_)
    if len(start_ns):
        outer[1:] = start_ns[1:] >= np.maximum.accumulate(end_ns)[:-1]
    return outer


def _tiny(names: NDArray[np.int32], dur_ns: Int64) -> NDArray[np.bool_]:
    """Whether each operator is of a kind whose median call is tiny.

    By kind and not by call: one call of thousands that the machine interrupted must not end the run.
    """
    tiny = np.zeros(len(names), dtype=np.bool_)
    kinds, kind = np.unique(names, return_inverse=True)
    order = np.argsort(kind, kind="stable")
    bounds = np.searchsorted(kind[order], np.arange(len(kinds) + 1))
    for at in range(len(kinds)):
        calls = order[bounds[at] : bounds[at + 1]]
        tiny[calls] = np.median(dur_ns[calls]) < TINY_OPERATOR_NS
    return tiny


def _runs(tiny: NDArray[np.bool_]) -> tuple[Int64, Int64]:
    """(first, one past the last) of each unbroken run."""
    edges = np.diff(np.concatenate(([0], tiny.astype(np.int8), [0])))
    return np.flatnonzero(edges == 1), np.flatnonzero(edges == -1)
