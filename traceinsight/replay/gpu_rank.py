"""One GPU rank in the graph: a host that launches, streams in order, waits across streams, host syncs."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceinsight.replay.awaited import QUICK_SYNC_NS, Awaited
from traceinsight.replay.graph import EdgeKind, GraphDraft, NodeKind
from traceinsight.replay.loader import HANDED_OVER_NS, Fetches
from traceinsight.replay.parts import Added, Part
from traceinsight.replay.room import add_room
from traceinsight.replay.stream_waits import queued, stream_waits
from traceinsight.replay.stretch import Stretch
from traceinsight.replay.told_waits import told_waits
from traceinsight.trace.activity import Activity
from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import GPU_WORK, MISSING, EventKind, Int64

_SYNCHRONISES = re.compile(r"Synchronize|^(cuda|hip)Memcpy(?!.*Async)")
_WAITS_FOR_EVENT = re.compile(r"StreamWaitEvent")

LAUNCH_QUANTILE = 0.05
"""The shortest launch-to-start times are those of an idle stream: pure launch latency."""

MAX_LAUNCH_NS = 25_000
"""A device that is behind all the time shows no pure launch latency: more than this is time in a queue."""


@dataclass(frozen=True, slots=True)
class _Device:
    """GPU events of the stretch in order of start; times on the rank's own clock, nodes of the draft.

    ``ends`` are the nodes at whose end an event is over: its own, or for a collective its transfer.
    """

    events: Int64
    starts: Int64
    ends: Int64


def add_gpu_rank(
    draft: GraphDraft,
    origin: Int64,
    trace: RankTrace,
    activity: Activity,  # noqa: ARG001 - the CPU ranks' builder needs it; one signature for both
    stretch: Stretch,
    offset_ns: int,
    parts: Sequence[Part],
) -> Added:
    """Add one rank's nodes and edges."""
    gpu = _gpu_events(trace, stretch)
    host = _Host(trace, stretch, gpu)
    host_nodes = host.add(draft, origin, offset_ns)
    device, added = _add_device(draft, trace, gpu, offset_ns, parts)
    latency_ns = _add_launches(draft, origin, trace, device, host, host_nodes, offset_ns)
    _add_streams(draft, trace, device)
    source, target = (
        told_waits(trace, gpu)
        if trace.recording.stream_waits
        else stream_waits(queued(trace, gpu, host.launches, host.event_waits), latency_ns)
    )
    draft.add_edges(EdgeKind.DEPENDENCY, device.ends[source], device.starts[target], after_end=True)
    add_room(draft, trace, device.events, device.starts, device.ends)
    host.add_syncs(draft, device, host_nodes)
    return added


def _add_launches(
    draft: GraphDraft,
    origin: Int64,
    trace: RankTrace,
    device: _Device,
    host: _Host,
    host_nodes: Int64,
    offset_ns: int,
) -> float:
    """Work starts no earlier than its launch plus launch latency; without one, no earlier than measured.

    Returns:
        The launch latency, ns.

    """
    events, gpu = trace.recording.events, device.events
    moment = host.moment_of(trace.launch[gpu], events.start_ns[gpu])
    launched = moment != MISSING
    node_of_launch = np.where(launched, host_nodes[moment], MISSING)
    latency = events.start_ns[gpu] - host.moments[moment]
    early = events.start_ns[gpu] < events.start_ns[trace.launch[gpu]]
    prompt = latency[launched & ~early]
    shortest = float(np.quantile(prompt, LAUNCH_QUANTILE, method="lower")) if len(prompt) else 0.0
    usual = min(shortest, MAX_LAUNCH_NS)
    # Early work hangs on an earlier moment, so the host's whole time since then is part of its lag.
    lag = np.where(early, latency, np.minimum(latency, usual))
    draft.add_edges(EdgeKind.LAUNCH, node_of_launch, device.starts, lag)
    adrift = ~launched
    draft.add_edges(
        EdgeKind.ORIGIN,
        np.full(int(adrift.sum()), origin[0]),
        device.starts[adrift],
        (events.start_ns[gpu[adrift]] - offset_ns - draft.origin_ns).astype(np.float64),
    )
    return usual


def _gpu_events(trace: RankTrace, stretch: Stretch) -> Int64:
    """The GPU events launched in the stretch, and those from before that still run when it begins."""
    events = trace.recording.events
    chosen = trace.recording.of_kind(*GPU_WORK)
    indices = [at for at, step in enumerate(trace.steps.steps) if step.number in stretch.steps]
    step = trace.steps.of_event[chosen]
    backlog = (step < indices[0]) & (events.end_ns[chosen] > stretch.host_window_ns(trace)[0])
    return chosen[np.isin(step, indices) | backlog]


def _add_device(
    draft: GraphDraft, trace: RankTrace, gpu: Int64, offset_ns: int, parts: Sequence[Part]
) -> tuple[_Device, Added]:
    events = trace.recording.events
    numbers = np.array([step.number for step in trace.steps.steps] + [MISSING, MISSING], dtype=np.int64)
    collective = np.full(len(gpu), MISSING, dtype=np.int64)
    position = np.searchsorted(gpu, [part.event for part in parts])
    collective[position] = [part.collective for part in parts]
    shared = collective != MISSING
    step = numbers[trace.steps.of_event[gpu]]
    starts = np.empty(len(gpu), dtype=np.int64)
    common = events.start_ns[gpu] - offset_ns
    work = ~shared
    starts[work] = draft.add_nodes(
        NodeKind.WORK,
        trace.rank,
        common[work],
        event=gpu[work],
        step=step[work],
        duration_ns=events.dur_ns[gpu[work]],
    )
    arrival_of = {part.event: part for part in parts}
    members = [arrival_of[event] for event in gpu[shared].tolist()]
    starts[shared] = draft.add_nodes(
        NodeKind.ARRIVAL,
        trace.rank,
        common[shared],
        event=gpu[shared],
        step=step[shared],
        collective=collective[shared],
    )
    met = np.array([part.met_ns for part in members], dtype=np.int64)
    ends = starts.copy()
    ends[shared] = draft.add_nodes(
        NodeKind.TRANSFER,
        trace.rank,
        met,
        event=gpu[shared],
        step=step[shared],
        collective=collective[shared],
        duration_ns=np.array([part.end_ns for part in members], dtype=np.int64) - met,
    )
    return _Device(gpu, starts, ends), Added(starts[position], ends[position])


def _add_streams(draft: GraphDraft, trace: RankTrace, device: _Device) -> None:
    """Work on one stream runs in order; where profilers show an overlap, start follows start."""
    events = trace.recording.events
    for lane in np.unique(events.lane[device.events]).tolist():
        on_stream = np.flatnonzero(events.lane[device.events] == lane)
        before, after = on_stream[:-1], on_stream[1:]
        ended = events.end_ns[device.events[before]] <= events.start_ns[device.events[after]]
        draft.add_edges(
            EdgeKind.STREAM, device.ends[before[ended]], device.starts[after[ended]], after_end=True
        )
        overlapping = (
            events.start_ns[device.events[after[~ended]]] - events.start_ns[device.events[before[~ended]]]
        )
        draft.add_edges(
            EdgeKind.STREAM, device.starts[before[~ended]], device.starts[after[~ended]], overlapping
        )


class _Host:
    """The host's moments: launches, synchronisations and step marks, in order of time.

    All launching threads together are one host: the main thread stands still while autograd's runs.
    """

    def __init__(self, trace: RankTrace, stretch: Stretch, gpu: Int64) -> None:
        self._trace = trace
        events = trace.recording.events
        window = stretch.host_window_ns(trace)
        launches = np.unique(trace.launch[gpu])
        launches = launches[launches != MISSING]
        self.launches = launches[events.start_ns[launches] >= window[0]]
        threads = np.unique(events.lane[self.launches])
        runtime = trace.recording.of_kind(EventKind.RUNTIME)
        runtime = runtime[
            np.isin(events.lane[runtime], threads)
            & (events.start_ns[runtime] >= window[0])
            & (events.start_ns[runtime] < window[1])
        ]
        named = trace.recording.named
        self.syncs = named(runtime, lambda name: _SYNCHRONISES.search(name) is not None)
        self.event_waits = named(runtime, lambda name: _WAITS_FOR_EVENT.search(name) is not None)
        self.fetches = Fetches.of(trace, window)
        begun = np.concatenate((self.launches, self.syncs, self.fetches.events))
        drains = _drains(trace, gpu, np.sort(events.start_ns[begun]), named(runtime, _allocates))
        blocked = _blocked(trace, gpu, self.launches)
        returns = np.concatenate((self.syncs, blocked, self.fetches.events))
        moments = np.concatenate(
            (events.start_ns[begun], window, events.end_ns[returns], events.start_ns[drains])
        )
        what = np.concatenate((begun, [MISSING, MISSING], returns, drains))
        # A call may begin in the very moment in which the one before it returns. Only a call that took no
        # time returns after what begins then, for it is itself among that.
        turn = np.repeat((1, 0), (len(begun) + len(window), len(returns) + len(drains)))
        turn[len(begun) + len(window) :][: len(returns)] += 2 * (events.dur_ns[returns] == 0)
        order = np.lexsort((turn, moments))
        self.moments, self.what, self.closes = moments[order], what[order].astype(np.int64), turn[order] != 1
        self._fetched = self.closes & np.isin(self.what, self.fetches.events)

    def add(self, draft: GraphDraft, origin: Int64, offset_ns: int) -> Int64:
        """Add the moments as a chain; the time before the end of a wait for device or loader is left open."""
        ready_ns = self.moments[self._fetched] - offset_ns
        ready = self.fetches.add_ready(draft, origin, self._trace.rank, ready_ns)
        nodes = draft.add_nodes(NodeKind.HOST, self._trace.rank, self.moments - offset_ns, event=self.what)
        gaps = np.diff(self.moments)
        self.fetches.add_waits(draft, ready, nodes[self._fetched], ready_ns)
        # A wait for the device would end at once if the device were done.
        quick = np.minimum(gaps, np.where(self._fetched[1:], HANDED_OVER_NS, QUICK_SYNC_NS))
        draft.add_edges(EdgeKind.HOST_TIME, nodes[:-1], nodes[1:], np.where(self.closes[1:], quick, gaps))
        draft.add_edges(
            EdgeKind.ORIGIN, origin, nodes[:1], float(self.moments[0] - offset_ns - draft.origin_ns)
        )
        return nodes

    def moment_of(self, runtime: Int64, start_ns: Int64) -> Int64:
        """Position of each launch call in ``moments``; MISSING for a launch outside the stretch.

        Profilers convert GPU times to the host's clock with an error of some tens of microseconds: work that
        seems to start before its launch hangs on the last moment before its start instead.
        """
        opening = np.flatnonzero(~self.closes & (self.what != MISSING))
        order = opening[np.argsort(self.what[opening])]
        keys = self.what[order]
        if not len(keys):
            return np.full(len(runtime), MISSING, dtype=np.int64)
        position = np.minimum(np.searchsorted(keys, runtime), len(keys) - 1)
        own = np.minimum(order[position], np.searchsorted(self.moments, start_ns, side="right") - 1)
        return np.where((keys[position] == runtime) & (own >= 0), own, MISSING)

    def add_syncs(self, draft: GraphDraft, device: _Device, nodes: Int64) -> None:
        """A synchronisation returns after the device work that it waited for."""
        awaited = Awaited(self._trace, device.events)
        queued = set(np.flatnonzero(self.closes & np.isin(self.what, self.launches)).tolist())
        for at in np.flatnonzero(self.closes & ~self._fetched).tolist():
            returned_ns = int(self.moments[at])
            work = awaited.work(int(self.what[at]), int(self.moments[at - 1]), returned_ns)
            if work != MISSING:
                draft.add_edges(
                    EdgeKind.QUEUE if at in queued else EdgeKind.SYNC,
                    device.ends[work : work + 1],
                    nodes[at : at + 1],
                    float(min(returned_ns - awaited.end_ns(work), QUICK_SYNC_NS * 5)),
                    after_end=True,
                )


def _allocates(name: str) -> bool:
    return name.startswith(("cudaMalloc", "cudaFree", "hipMalloc", "hipFree"))


def _drains(trace: RankTrace, gpu: Int64, moments: Int64, allocations: Int64) -> Int64:
    """Allocator calls before which the host stood waiting for the device, without any recorded call.

    PyTorch's allocator waits for its blocks' events before it frees and allocates anew. Such a call comes
    right after device work that ended in a long gap of the host's, and that was launched before the gap.
    """
    events = trace.recording.events
    ends = np.sort(events.end_ns[gpu])
    if not len(ends) or not len(moments):
        return np.empty(0, dtype=np.int64)
    call_ns = events.start_ns[allocations]
    before = moments[np.maximum(np.searchsorted(moments, call_ns) - 1, 0)]
    previous = np.concatenate(([0], call_ns[:-1]))  # the call itself may follow another allocator call
    ended = ends[np.maximum(np.searchsorted(ends, call_ns, side="right") - 1, 0)]
    gap_from = np.maximum(before, previous)
    waited = (call_ns - gap_from >= LONG_GAP_NS) & (ended > gap_from) & (call_ns - ended <= LONG_GAP_NS)
    return allocations[waited]


def _blocked(trace: RankTrace, gpu: Int64, launches: Int64) -> Int64:
    """Launch calls that took long because the device's queue was full (about 1,000 launches with CUDA)."""
    events = trace.recording.events
    long = launches[events.dur_ns[launches] >= BLOCKED_LAUNCH_NS]
    launch = trace.launch[gpu]
    issued = np.sort(np.where(launch == MISSING, np.iinfo(np.int64).min, events.start_ns[launch]))
    outstanding = np.searchsorted(issued, events.start_ns[long]) - np.searchsorted(
        np.sort(events.end_ns[gpu]), events.end_ns[long]
    )
    return np.asarray(long[outstanding >= FULL_QUEUE], dtype=np.int64)


BLOCKED_LAUNCH_NS = 50_000
"""A launch takes some microseconds; one that takes this long waits for something."""

FULL_QUEUE = 256
"""With fewer launches outstanding than this, a long launch call has another reason than a full queue."""

LONG_GAP_NS = 1_000_000
"""A host that launches nothing for this long is busy elsewhere or waits."""
