"""Kernels run slower beside a transfer, which takes memory bandwidth and multiprocessors.

How much slower, a run shows itself: where the same kernel of a step lies beside a transfer in one step and
not, or less, in another. With transfers shortened or moved by an edit, kernels lose or gain that part.

A kernel that is beside transfers for the share x of its time does its work at the speed 1 - r x, so that
ln(duration) grows by about r x. r is fitted over all kernels by the deviations from their own means.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceinsight.base import intervals
from traceinsight.base.kernel_families import COMMUNICATION
from traceinsight.replay.facts import Facts
from traceinsight.replay.graph import Beside, Bool, Graph, NodeKind
from traceinsight.trace.recording import MISSING, Int64
from traceinsight.trace.trace_set import TraceSet

Float = NDArray[np.float64]

TOLD_NS = 20_000
"""Shorter kernels differ for other reasons by more than a transfer slows them."""

STEADY = 1.3
"""Longest over shortest run of a kernel: where it is more, its work differs from step to step."""

CERTAIN = 3.0
"""The loss of speed counts where it is as many times its standard error."""

_MANY = 1 << 32  # kernels of one name in a step

LEAST, MOST = 0.01, 0.3
"""Losses of speed below change nothing; above, something else is the matter."""


def settled(graph: Graph, start_ns: Float) -> Graph:
    """The graph with kernels as slow as these starts make them, instead of as slow as measured."""
    if graph.beside is None:
        return graph
    loss = graph.beside.loss
    before, now = graph.beside.share, share_beside(graph, start_ns)
    speed = np.maximum(1 - loss * before, 1 - MOST) / np.maximum(1 - loss * now, 1 - MOST)
    return graph.with_durations(graph.nodes.duration_ns * speed)


def with_beside(graphs: Sequence[Graph], trace_set: TraceSet) -> tuple[Graph, ...]:
    """The graphs with what transfers take from kernels, where the run shows it."""
    shares = [share_beside(graph, graph.nodes.measured_ns.astype(np.float64)) for graph in graphs]
    loss = _loss(graphs, trace_set, shares)
    if loss is None:
        return tuple(graphs)
    return tuple(
        replace(graph, beside=Beside(loss, share)) for graph, share in zip(graphs, shares, strict=True)
    )


def share_beside(graph: Graph, start_ns: Float) -> Float:
    """Per node of work, time beside its rank's transfers over its duration; else 0; shape (n_nodes,)."""
    nodes = graph.nodes
    end_ns = start_ns + nodes.duration_ns
    found = np.zeros(len(nodes.kind))
    for rank in np.unique(nodes.rank[nodes.kind == NodeKind.TRANSFER]).tolist():
        mine = nodes.rank == rank
        moving = np.flatnonzero(mine & (nodes.kind == NodeKind.TRANSFER))
        work = np.flatnonzero(mine & (nodes.kind == NodeKind.WORK) & (nodes.duration_ns > 0))
        cuts = np.concatenate((start_ns[moving], end_ns[moving]))
        order = np.argsort(cuts, kind="stable")
        cuts, running = cuts[order], np.cumsum(np.repeat((1.0, -1.0), len(moving))[order])
        moved = np.concatenate(([0.0], np.cumsum(running[:-1] * np.diff(cuts))))
        beside = np.interp(end_ns[work], cuts, moved) - np.interp(start_ns[work], cuts, moved)
        found[work] = beside / nodes.duration_ns[work]
    return found


def _unsure(graph: Graph, trace_set: TraceSet) -> Bool:
    """Whether each node runs beside a collective that has no transfer in the graph; shape (n_nodes,).

    It was launched before the stretch or met nobody, so how much of it is a transfer is not known.
    """
    nodes = graph.nodes
    start_ns, end_ns = nodes.measured_ns, nodes.measured_ns + nodes.duration_ns.astype(np.int64)
    alone = (nodes.kind == NodeKind.WORK) & (Facts(trace_set, graph).family == COMMUNICATION)
    unsure = np.zeros(len(nodes.kind), dtype=np.bool_)
    for rank in np.unique(nodes.rank[alone]).tolist():
        mine = np.flatnonzero(nodes.rank == rank)
        spans = intervals.union(start_ns[alone & (nodes.rank == rank)], end_ns[alone & (nodes.rank == rank)])
        following = np.searchsorted(spans[:, 1], start_ns[mine], side="right")
        begin_ns = np.append(spans[:, 0], np.iinfo(np.int64).max)[following]
        unsure[mine] = begin_ns < end_ns[mine]
    return unsure


def _loss(graphs: Sequence[Graph], trace_set: TraceSet, shares: Sequence[Float]) -> float | None:
    """Of speed beside one transfer; None where the run does not show one."""
    kernels = [_kernels(graph, trace_set) for graph in graphs]
    keys = np.concatenate([key for _, key in kernels])
    if not len(keys):
        return None
    _, kernel = np.unique(keys, return_inverse=True)
    beside = np.concatenate([share[work] for share, (work, _) in zip(shares, kernels, strict=True)])
    length = np.log(
        np.concatenate(
            [graph.nodes.duration_ns[work] for graph, (work, _) in zip(graphs, kernels, strict=True)]
        )
    )
    low, high = np.full(kernel.max() + 1, np.inf), np.full(kernel.max() + 1, -np.inf)
    np.minimum.at(low, kernel, length)
    np.maximum.at(high, kernel, length)
    steady = (high - low <= np.log(STEADY))[kernel]
    x, y = _deviations(beside[steady], kernel[steady]), _deviations(length[steady], kernel[steady])
    varied = float((x**2).sum())
    if varied <= 0:
        return None
    loss = float((x * y).sum()) / varied
    error = float(np.sqrt((((y - loss * x) * x) ** 2).sum())) / varied
    return min(loss, MOST) if loss >= max(LEAST, CERTAIN * error) else None


def _kernels(graph: Graph, trace_set: TraceSet) -> tuple[Int64, Int64]:
    """Nodes of work that tell, and numbers for rank, name and place in the step; both of shape (n,)."""
    nodes, unsure = graph.nodes, _unsure(graph, trace_set)
    found, keys = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    names = 0
    for trace in trace_set.ranks:
        mine = (nodes.kind == NodeKind.WORK) & (nodes.rank == trace.rank) & (nodes.event != MISSING)
        work = np.flatnonzero(mine & np.isin(nodes.step, graph.steps))
        work = work[trace.launch[nodes.event[work]] != MISSING]  # others would shift the first step's places
        name = trace.recording.events.name[nodes.event[work]].astype(np.int64)
        order = np.lexsort((nodes.measured_ns[work], name, nodes.step[work]))
        work, name = work[order], name[order]
        step = nodes.step[work]
        fresh = np.ones(len(work), dtype=np.bool_)
        fresh[1:] = (np.diff(name) != 0) | (np.diff(step) != 0)
        at = np.arange(len(work))
        ordinal = at - np.maximum.accumulate(np.where(fresh, at, 0))
        long = (nodes.duration_ns[work] >= TOLD_NS) & ~unsure[work]
        found.append(work[long])
        keys.append(((names + name) * _MANY + ordinal)[long])
        names += len(trace.recording.strings)
    return np.concatenate(found), np.concatenate(keys)


def _deviations(values: Float, group: Int64) -> Float:
    """From the mean of each one's group."""
    count = np.maximum(np.bincount(group), 1)
    means = np.bincount(group, values, minlength=len(count)) / count
    return np.asarray(values - means[group], dtype=np.float64)
