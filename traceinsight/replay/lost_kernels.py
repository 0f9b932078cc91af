"""Kernels that the profiler lost, given back from the same place of the program in the other steps.

A launch tells that there was a kernel. What it was, the other steps tell; when it ran, what it had to wait
for; and when a collective ended, its other members. Only a replay needs this: there a collective without one
of its members would wait for nobody, and take as its own time what was waiting for that member.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from traceinsight.replay.lost_times import Found, Meetings, RankLosses
from traceinsight.trace.assemble import derive_rank, matched_on_clock
from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import GPU_WORK, CommArgs, EventTable, Recording
from traceinsight.trace.steady_state import steady_steps
from traceinsight.trace.trace_set import MatchedCollective, TraceSet


def with_lost_kernels(trace_set: TraceSet) -> TraceSet:
    """The run with its lost kernels as they probably were, and with the steps that lack none then.

    Clocks stay. What no other step shows, or shows as several kernels of one launch, stays lost. So does a
    member of a collective that no other rank recorded.
    """
    meetings = Meetings(trace_set)
    traces = []
    for trace in trace_set.ranks:
        found = RankLosses(trace_set, trace, meetings).found() if trace.has_gpu else []
        traces.append(_given_back(trace, found) if found else trace)
    if all(new is old for new, old in zip(traces, trace_set.ranks, strict=True)):
        return trace_set
    matched = matched_on_clock(traces, trace_set.clocks, trace_set.world_size)
    steps, dropped, _ = steady_steps(traces)
    return replace(trace_set, ranks=tuple(traces), collectives=matched, steps=steps, dropped_steps=dropped)


@dataclass(frozen=True, slots=True)
class Lost:
    """What the profiler lost of the replayed steps.

    ``guessed_share`` is the share of their device events that were given back. ``lacking`` of ``collectives``
    still lack a rank that was captured: ``lacking_share`` is the time that these take over that of the steps.
    """

    guessed_share: float
    lacking: int
    collectives: int
    lacking_share: float


def lost_of(trace_set: TraceSet, steps: Collection[int]) -> Lost:
    """What was lost of these steps, after :func:`with_lost_kernels`. A rank without any file lost nothing."""
    guessed = events = 0
    windows_ns = []
    for trace in trace_set.ranks:
        chosen = [at for at, step in enumerate(trace.steps.steps) if step.number in steps]
        mine = np.isin(trace.steps.of_event, chosen)
        guessed += int(mine[trace.guessed].sum())
        events += int(mine[trace.recording.of_kind(*GPU_WORK)].sum())
        windows = [trace.steps.steps[at].window_ns for at in chosen]
        windows_ns.append(sum(end - start for start, end in windows))
    captured = {trace.rank for trace in trace_set.ranks}
    known = [one for one in trace_set.collectives if one.step in steps and one.synchronising and one.group]
    lacking = [one for one in known if captured.intersection(one.absent_ranks)]
    held_ns = sum(max(one.ends_ns) - min(one.starts_ns) for one in lacking)
    return Lost(guessed / max(events, 1), len(lacking), len(known), held_ns / max(*windows_ns, 1))


def _given_back(trace: RankTrace, found: Sequence[Found]) -> RankTrace:
    """The rank with these kernels among its events."""
    recording = trace.recording
    events = recording.events
    call = np.array([one.call for one in found], dtype=np.int64)
    twin = np.array([one.twin for one in found], dtype=np.int64)
    start_ns = np.array([one.start_ns for one in found], dtype=np.int64)
    columns = {name: getattr(events, name)[twin] for name in EventTable.__dataclass_fields__} | {
        "start_ns": start_ns,
        "dur_ns": np.array([one.end_ns for one in found], dtype=np.int64) - start_ns,
        "correlation": events.correlation[call],
        "external_id": events.external_id[call],
    }
    whole = {name: np.concatenate((getattr(events, name), more)) for name, more in columns.items()}
    order = np.lexsort((whole["name"], whole["lane"], -whole["dur_ns"], whole["start_ns"]))
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    args = dict(recording.comm_args) | {
        len(events) + at: _args(recording.comm_args[one.twin], one.met)
        for at, one in enumerate(found)
        if one.twin in recording.comm_args
    }
    given: Recording = replace(
        recording,
        events=EventTable(**{name: column[order] for name, column in whole.items()}),
        comm_args={int(place[at]): args[at] for at in args},
        _cache={},
    )
    added = np.sort(place[len(events) :])
    return replace(derive_rank(given, trace.rank), set_aside=trace.set_aside, guessed=added)


def _args(twin: CommArgs, met: MatchedCollective | None) -> CommArgs:
    return twin if met is None else replace(twin, sequence=met.members[0].sequence)
