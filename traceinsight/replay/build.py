"""Building the graph of one stretch: each rank's host and device, joined by the collectives."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from traceinsight.replay.cpu_rank import add_cpu_rank
from traceinsight.replay.gpu_rank import add_gpu_rank
from traceinsight.replay.graph import EdgeKind, Graph, GraphDraft, NodeKind
from traceinsight.replay.parts import Part
from traceinsight.replay.stretch import Stretch
from traceinsight.trace.activity import Activity
from traceinsight.trace.recording import Int64
from traceinsight.trace.trace_set import TraceSet


def build_graph(trace_set: TraceSet, activity: Mapping[int, Activity], stretch: Stretch) -> Graph:
    """The dependency graph of a stretch over all ranks; times on the common clock."""
    windows = {trace.rank: stretch.host_window_ns(trace) for trace in trace_set.ranks}
    origin = min(windows[trace.rank][0] - trace_set.offset_ns(trace.rank) for trace in trace_set.ranks)
    draft = GraphDraft(origin)
    start = draft.add_nodes(NodeKind.HOST, -1, np.array([origin], dtype=np.int64))
    parts = _parts(trace_set, stretch)
    arrivals: dict[int, dict[int, int]] = defaultdict(dict)
    transfers: dict[int, dict[int, int]] = defaultdict(dict)
    for trace in trace_set.ranks:
        add_rank = add_gpu_rank if trace.has_gpu else add_cpu_rank
        mine = parts[trace.rank]
        added = add_rank(
            draft, start, trace, activity[trace.rank], stretch, trace_set.offset_ns(trace.rank), mine
        )
        for part, arrival, transfer in zip(
            mine, added.arrivals.tolist(), added.transfers.tolist(), strict=True
        ):
            arrivals[part.collective][trace.rank] = arrival
            transfers[part.collective][trace.rank] = transfer
    for collective, members in arrivals.items():
        _add_meeting(draft, trace_set, collective, members, transfers[collective])
    return draft.finish(stretch.steps)


def _parts(trace_set: TraceSet, stretch: Stretch) -> dict[int, list[Part]]:
    """Every rank's collectives of the stretch, in the rank's own order of launch."""
    found: dict[int, list[Part]] = defaultdict(list)
    for index, one in enumerate(trace_set.collectives):
        if one.step not in stretch.steps:
            continue
        for rank, member, start, end in zip(one.ranks, one.members, one.starts_ns, one.ends_ns, strict=True):
            # Without synchronisation every member goes at its own pace: it "meets" itself.
            # A clock error may let a member end before the last arrives: its transfer then takes no time.
            met = max(one.last_arrival_ns, start) if one.synchronising else start
            found[rank].append(Part(index, member.event, member.launch_ns, start, met, max(met, end)))
    for parts in found.values():
        parts.sort(key=lambda part: part.launch_ns)
    return found


def _add_meeting(
    draft: GraphDraft,
    trace_set: TraceSet,
    collective: int,
    arrivals: Mapping[int, int],
    transfers: Mapping[int, int],
) -> None:
    """A chain of maxima over the arrivals; every transfer starts at its end."""
    one = trace_set.collectives[collective]
    if not one.synchronising:
        for rank, arrival in arrivals.items():
            draft.add_edges(EdgeKind.MEETING, _single(arrival), _single(transfers[rank]))
        return
    times = dict(zip(one.ranks, one.starts_ns, strict=True))
    ordered = sorted(arrivals, key=lambda rank: times[rank])
    reached = np.array([times[rank] for rank in ordered], dtype=np.int64)
    chain = draft.add_nodes(
        NodeKind.MEETING, -1, reached, collective=np.full(len(ordered), collective, dtype=np.int64)
    )
    draft.add_edges(EdgeKind.MEETING, np.array([arrivals[rank] for rank in ordered], dtype=np.int64), chain)
    draft.add_edges(EdgeKind.MEETING, chain[:-1], chain[1:])
    ends: Sequence[int] = [transfers[rank] for rank in ordered]
    draft.add_edges(EdgeKind.MEETING, np.full(len(ends), chain[-1]), np.array(ends, dtype=np.int64))


def _single(number: int) -> Int64:
    return np.array([number], dtype=np.int64)
