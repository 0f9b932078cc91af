"""Where the replayed step of each rank goes: what its device does at the moments the replay gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from traceinsight.base import intervals
from traceinsight.base.intervals import Spans
from traceinsight.base.kernel_families import COMMUNICATION
from traceinsight.replay.facts import Facts
from traceinsight.replay.graph import Bool, Graph, NodeKind
from traceinsight.replay.solve import Times, expected_step_ns, replay, step_ends_ns, step_length_ns
from traceinsight.trace.recording import MISSING, EventKind, Int64
from traceinsight.trace.trace_set import TraceSet

_COPIES = (EventKind.MEMCPY, EventKind.MEMSET)


@dataclass(frozen=True, slots=True)
class RankParts:
    """Of one rank, ns per step; they sum to the length of the replayed step.

    As in the measured partition compute hides communication, and that hides copies; ``transfer_ns`` also
    hides ``wait_ns``, where two collectives overlap. ``idle_ns`` is the rest, without ``replica_sync_ns``,
    the share of a step in the syncs of replicas.
    """

    rank: int
    compute_ns: float
    transfer_ns: float
    wait_ns: float
    copy_ns: float
    idle_ns: float
    replica_sync_ns: float


def rank_parts(trace_set: TraceSet, graphs: Sequence[Graph]) -> list[RankParts]:
    """Mean over the replayed steps that follow another one; empty where there is none.

    Of runs on devices only: the compute of a CPU rank is its host's own time, which is no node.
    """
    if not all(trace.has_gpu for trace in trace_set.ranks):
        return []
    starts = [replay(graph) for graph in graphs]
    total = {trace.rank: np.zeros(5) for trace in trace_set.ranks}
    steps = 0
    for graph, start in zip(graphs, starts, strict=True):
        ends = step_ends_ns(graph, start)
        if len(ends) > 1:
            work = _work(trace_set, graph)
            for rank in total:
                total[rank] += _parts(graph, start, work, rank, (round(ends[0]), round(ends[-1])))
            steps += len(ends) - 1
    if not steps:
        return []
    sync_ns = expected_step_ns(graphs) - step_length_ns(graphs, starts)
    found = []
    for rank, parts in total.items():
        compute, transfer, wait, copy, idle = (parts / steps).tolist()
        found.append(RankParts(rank, compute, transfer, wait, copy, idle, sync_ns))
    return found


@dataclass(frozen=True, slots=True)
class _Work:
    """Which nodes are compute, communication, and copies; each of shape (n_nodes,)."""

    compute: Bool
    communication: Bool
    copy: Bool


def _work(trace_set: TraceSet, graph: Graph) -> _Work:
    nodes = graph.nodes
    work = nodes.kind == NodeKind.WORK
    copy = np.zeros(len(work), dtype=np.bool_)
    for trace in trace_set.ranks:
        own = np.flatnonzero(work & (nodes.rank == trace.rank) & (nodes.event != MISSING))
        copy[own] = np.isin(trace.recording.events.kind[nodes.event[own]], _COPIES)
    # Collectives that were not matched are work of one rank.
    alone = work & ~copy & (Facts(trace_set, graph).family == COMMUNICATION)
    return _Work(work & ~copy & ~alone, alone | (nodes.kind == NodeKind.TRANSFER), copy)


def _parts(
    graph: Graph, start: Times, work: _Work, rank: int, window: tuple[int, int]
) -> tuple[int, int, int, int, int]:
    """(compute, transfer, wait, copy, idle) of one rank within the window, ns."""
    mine = graph.nodes.rank == rank
    end = start + graph.nodes.duration_ns

    def spans(nodes: Bool) -> Spans:
        return intervals.union(_whole(start[nodes & mine]), _whole(end[nodes & mine]))

    found, taken = [], intervals.EMPTY
    for part in (
        spans(work.compute),
        spans(work.communication),
        _waits(graph, start, mine),
        spans(work.copy),
    ):
        inside = intervals.clip(part, *window)
        found.append(intervals.measure(intervals.subtract(inside, taken)))
        taken = intervals.add(taken, inside)
    compute, transfer, wait, copy = found
    return compute, transfer, wait, copy, window[1] - window[0] - intervals.measure(taken)


def _waits(graph: Graph, start: Times, mine: Bool) -> Spans:
    """From a rank's arrival at a collective to the begin of its transfer."""
    nodes = graph.nodes
    arrivals = np.flatnonzero(mine & (nodes.kind == NodeKind.ARRIVAL))
    transfers = np.flatnonzero(mine & (nodes.kind == NodeKind.TRANSFER))
    _, first, second = np.intersect1d(
        nodes.collective[arrivals], nodes.collective[transfers], return_indices=True
    )
    return intervals.union(_whole(start[arrivals[first]]), _whole(start[transfers[second]]))


def _whole(times_ns: Times) -> Int64:
    return np.rint(times_ns).astype(np.int64)
