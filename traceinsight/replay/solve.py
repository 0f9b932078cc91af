"""Replaying a graph: one pass in order of the nodes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from traceinsight.replay.beside import settled
from traceinsight.replay.graph import Graph

Times = NDArray[np.float64]


def replay(graph: Graph) -> Times:
    """Start of every node in ns after the graph's origin, shape (n_nodes,).

    A node without predecessors starts when it was measured.
    """
    edges, nodes = graph.edges, graph.nodes
    weight = edges.lag_ns + np.where(edges.after_end, nodes.duration_ns[edges.source], 0.0)
    # Plain lists: indexing them is several times faster than indexing arrays one element at a time.
    source, cost, first = edges.source.tolist(), weight.tolist(), edges.first.tolist()
    start: list[float] = nodes.measured_ns.tolist()
    for node in range(len(start)):
        low, high = first[node], first[node + 1]
        if low == high:
            continue
        latest = start[source[low]] + cost[low]
        for edge in range(low + 1, high):
            other = start[source[edge]] + cost[edge]
            latest = max(latest, other)
        start[node] = latest
    return np.array(start)


def step_ends_ns(graph: Graph, start_ns: Times) -> list[float]:
    """When the last work of each step is done over all ranks, ns after the graph's origin, by step.

    A step in which nothing was recorded is left out.
    """
    ends = start_ns + graph.nodes.duration_ns
    members = [graph.nodes.step == step for step in graph.steps]
    return [float(ends[mine].max()) for mine in members if mine.any()]


def step_length_ns(graphs: Sequence[Graph], starts_ns: Sequence[Times]) -> float:
    """Mean time from the end of one step's work to the end of the next one's, 0 if there is no work.

    The first step of a stretch only gives the starting point: what ran before it is not in the graph, and
    what runs after the last would make that one longer. Stretches of one step, which count from their
    beginning, matter only where there is no longer one.
    """
    ends = [step_ends_ns(graph, start) for graph, start in zip(graphs, starts_ns, strict=True)]
    lengths = [(one[-1] - one[0], len(one) - 1) for one in ends if len(one) > 1]
    lengths = lengths or [(one[0], 1) for one in ends if one]
    total, count = sum(length for length, _ in lengths), sum(steps for _, steps in lengths)
    return total / count if count else 0.0


def expected_step_ns(graphs: Sequence[Graph]) -> float:
    """The mean step length of replayed graphs, with each one's share of the replica syncs; ns."""
    graphs = [settled(graph, replay(graph)) if graph.beside else graph for graph in graphs]
    starts = [replay(graph) for graph in graphs]
    lengths = [len(graph.steps) - 1 for graph in graphs]
    added = [_sync_ns(*one) for one in zip(graphs, starts, strict=True)]
    shared = sum(length * extra for length, extra in zip(lengths, added, strict=True))
    return step_length_ns(graphs, starts) + shared / max(sum(lengths), 1)


def _sync_ns(graph: Graph, start_ns: Times) -> float:
    """What replica syncs add to a step on average; 0 for a single step, of which nothing follows its sync.

    Whole syncs are replayed, the first of them in the first step: the steps after one may make up for a part
    of it. Of as many whole periods as were captured, or of the captured part of one.
    """
    ends, sync = step_ends_ns(graph, start_ns), graph.sync
    if sync is None or len(ends) < 2:
        return 0.0
    syncs = max((len(ends) - 1) // sync.every, 1)
    last = min(syncs * sync.every, len(ends) - 1)
    held = graph.synchronised(graph.steps[: last : sync.every])
    return (step_ends_ns(held, replay(held))[last] - ends[last]) / (syncs * sync.every)
