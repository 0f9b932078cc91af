"""The phases of a step: host time of the main thread, and the device work each phase launched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from traceinsight.base import intervals
from traceinsight.base.intervals import Spans
from traceinsight.base.labels import PHASES, Phase
from traceinsight.diagnosis import PhaseRow
from traceinsight.trace.activity import Activity, event_spans
from traceinsight.trace.collectives import communication_kernels, phases_of
from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import MISSING, EventKind, Int64
from traceinsight.trace.trace_set import TraceSet


def phases(trace_set: TraceSet, activity: Mapping[int, Activity]) -> list[PhaseRow]:
    """One row per rank, steady step and phase that took any time."""
    rows: list[PhaseRow] = []
    for trace in trace_set.ranks:
        rows += _rank_phases(trace, activity[trace.rank], trace_set.steps)
    return rows


def _rank_phases(trace: RankTrace, activity: Activity, numbers: tuple[int, ...]) -> list[PhaseRow]:
    host = _host_spans(trace)
    device = _device_spans(trace) if trace.has_gpu else _cpu_spans(trace, activity, host)
    rows = []
    for number in numbers:
        step = trace.step(number)
        if step is None:
            continue
        cpu, window = (step.cpu_start_ns, step.cpu_end_ns), step.window_ns
        for phase in PHASES:
            compute, comm, copy = (intervals.clip(device[kind, phase], *window) for kind in _KINDS)
            exposed = intervals.subtract(comm, activity.compute)
            row = PhaseRow(
                rank=trace.rank,
                step=number,
                phase=phase,
                host_ns=intervals.measure(intervals.clip(host[phase], *cpu)),
                compute_ns=intervals.measure(compute),
                comm_ns=intervals.measure(comm),
                exposed_comm_ns=intervals.measure(exposed),
                copy_ns=intervals.measure(copy),
                exposed_transfer_ns=intervals.measure(intervals.intersect(exposed, activity.transfer)),
            )
            if row.host_ns or row.compute_ns or row.comm_ns or row.copy_ns:
                rows.append(row)
    return rows


def _host_spans(trace: RankTrace) -> dict[Phase, Spans]:
    """The main thread's time by its innermost phase annotation."""
    found: dict[Phase, Spans] = defaultdict(lambda: intervals.EMPTY)
    events, lane = trace.recording.events, trace.steps.main_lane
    annotations = trace.recording.of_kind(EventKind.ANNOTATION)
    own = annotations[events.lane[annotations] == lane]
    if lane is None or not len(own):
        return found
    cuts = np.unique(np.concatenate((events.start_ns[own], events.end_ns[own])))
    starts, ends = cuts[:-1], cuts[1:]
    phase = trace.annotations.phases_at(np.full(len(starts), lane, dtype=np.int64), starts)
    for one in set(phase) - {None}:
        chosen = np.array([other == one for other in phase])
        found[one or "other"] = intervals.union(starts[chosen], ends[chosen])
    return found


_KINDS = ("compute", "comm", "copy")


def _device_spans(trace: RankTrace) -> dict[tuple[str, Phase], Spans]:
    """A GPU's work by kind and launching phase."""
    found: dict[tuple[str, Phase], Spans] = defaultdict(lambda: intervals.EMPTY)
    communication = communication_kernels(trace.recording)
    kernels = trace.recording.of_kind(EventKind.KERNEL)
    groups: dict[str, Int64] = {
        "compute": np.setdiff1d(kernels, communication, assume_unique=True),
        "copy": trace.recording.of_kind(EventKind.MEMCPY, EventKind.MEMSET),
    }
    for kind, chosen in groups.items():
        for phase, members in _by_phase(trace, chosen).items():
            found[kind, phase] = event_spans(trace, members)
    for phase in PHASES:
        found["comm", phase] = _collective_spans(trace, phase)
    return found


def _cpu_spans(
    trace: RankTrace, activity: Activity, host: Mapping[Phase, Spans]
) -> dict[tuple[str, Phase], Spans]:
    """A CPU rank computes in the phase that its main thread is in."""
    found: dict[tuple[str, Phase], Spans] = defaultdict(lambda: intervals.EMPTY)
    for phase in PHASES:
        found["compute", phase] = intervals.intersect(activity.compute, host[phase])
        found["comm", phase] = _collective_spans(trace, phase)
    return found


def _collective_spans(trace: RankTrace, phase: Phase) -> Spans:
    parts = [part.event for part in trace.collectives if part.phase == phase]
    return event_spans(trace, np.array(parts, dtype=np.int64))


def _by_phase(trace: RankTrace, chosen: Int64) -> dict[Phase, Int64]:
    launch = trace.launch[chosen]
    source = np.where(launch != MISSING, launch, chosen)
    phase = np.array(phases_of(trace.recording, trace.annotations, trace.steps, source), dtype=object)
    return {one: chosen[phase == one] for one in PHASES if (phase == one).any()}
