"""The dependency graph: moments that wait for earlier moments.

A node is a moment with work behind it: it starts at the latest of its predecessors' starts (or ends) plus a
lag, and its work then takes ``duration``. Nodes are numbered in an order in which every edge points forward,
so one pass in that order replays the whole graph.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceinsight.replay.links import Links
from traceinsight.trace.recording import MISSING, Int8, Int32, Int64

Bool = NDArray[np.bool_]


class NodeKind(IntEnum):
    """What a moment is."""

    HOST = 0  # a host thread reaches a launch, a synchronisation or a step mark
    WORK = 1  # device work that no other rank takes part in
    ARRIVAL = 2  # a rank arrives at a collective
    MEETING = 3  # the last member so far has arrived
    TRANSFER = 4  # a rank's part of a collective after all have arrived


class EdgeKind(IntEnum):
    """Why a moment waits for another."""

    ORIGIN = 0  # it was under way when the capture began
    HOST_TIME = 1  # the host's own time between two moments
    LAUNCH = 2  # from the launch call to the device
    STREAM = 3  # order on one stream
    DEPENDENCY = 4  # across streams of one device
    MEETING = 5  # across ranks
    SYNC = 6  # the host waits for the device
    QUEUE = 7  # a launch waits until the device's queue has room
    INPUT = 8  # a batch that the loader makes meanwhile, or room in the loader's queue


@dataclass(frozen=True, slots=True)
class Nodes:
    """Columns of shape (n_nodes,). ``event`` indexes the rank's recording, MISSING where there is none.

    ``measured_ns`` counts from the graph's origin on the common clock. ``step`` is a step number.
    ``collective`` indexes ``TraceSet.collectives``, MISSING for everything else.
    """

    kind: Int8
    rank: Int32
    event: Int64
    step: Int64
    collective: Int64
    measured_ns: Int64
    duration_ns: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Edges:
    """Columns of shape (n_edges,), grouped by target; ``first`` has shape (n_nodes + 1,).

    ``after_end``: the target waits for the source's end, not its start. ``lag_ns`` comes on top; of it,
    ``unexplained_ns`` is delay that was measured and that nothing in the graph accounts for.
    """

    source: Int64
    target: Int64
    kind: Int8
    after_end: Bool
    lag_ns: NDArray[np.float64]
    unexplained_ns: NDArray[np.float64]
    first: Int64


@dataclass(frozen=True, slots=True)
class ReplicaSync:
    """What holds the ranks up in every ``every``-th step only.

    ``held_ns`` has shape (n_nodes,): how long what follows the end of each node waits in a step with a sync.
    """

    held_ns: NDArray[np.float64]
    every: int


@dataclass(frozen=True, slots=True)
class Beside:
    """What kernels beside a transfer lose.

    ``loss`` of their speed per transfer, 0..1. ``share`` has shape (n_nodes,): the measured time that each
    was beside transfers, over its duration; above 1 beside several.
    """

    loss: float
    share: NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Graph:
    """One stretch of consecutive steps, ready to replay. ``origin_ns`` is its start on the common clock.

    ``beside`` is None where kernels do not show that transfers slow them.

    What edits leave for those after them: ``latency_ns``, the part of each transfer that its bytes do not
    explain, shape (n_nodes,); ``links``, what the job's links carry; ``group_size``, the ranks that exchanges
    were confined to; ``sync``, that of their replicas, which no lag of the graph contains. None: as measured.
    """

    nodes: Nodes
    edges: Edges
    origin_ns: int
    steps: tuple[int, ...]
    latency_ns: NDArray[np.float64] | None = None
    links: Links | None = None
    group_size: int | None = None
    sync: ReplicaSync | None = None
    beside: Beside | None = None

    def with_durations(self, duration_ns: NDArray[np.float64]) -> Graph:
        """The same graph with other durations of work."""
        return replace(self, nodes=replace(self.nodes, duration_ns=duration_ns))

    def with_lags(self, lag_ns: NDArray[np.float64]) -> Graph:
        """The same graph with other lags."""
        return replace(self, edges=replace(self.edges, lag_ns=lag_ns))

    def synchronised(self, steps: Sequence[int]) -> Graph:
        """The same graph with its replica sync in these steps, and in no others."""
        if self.sync is None:
            return self
        held_ns = np.where(np.isin(self.nodes.step, steps), self.sync.held_ns, 0.0)
        held_up = np.where(self.edges.after_end, held_ns[self.edges.source], 0.0)
        return replace(self.with_lags(self.edges.lag_ns + held_up), sync=None)

    def with_more_edges(self, kind: EdgeKind, source: Int64, target: Int64) -> Graph:
        """Let each target also wait for the end of its source, which must come before it."""
        size, old = len(source), self.edges
        columns: _Columns = {
            "source": np.concatenate((old.source, source)),
            "target": np.concatenate((old.target, target)),
            "kind": np.concatenate((old.kind, np.full(size, int(kind), dtype=np.int8))),
            "after_end": np.concatenate((old.after_end, np.ones(size, dtype=np.bool_))),
            "lag_ns": np.concatenate((old.lag_ns, np.zeros(size))),
            "unexplained_ns": np.concatenate((old.unexplained_ns, np.zeros(size))),
        }
        order = np.argsort(columns["target"], kind="stable")
        columns = {name: column[order] for name, column in columns.items()}
        first = np.searchsorted(columns["target"], np.arange(len(self.nodes.kind) + 1))
        return replace(self, edges=Edges(**columns, first=first))


@dataclass(slots=True)
class GraphDraft:
    """Collects nodes and edges in any order; :meth:`finish` sorts them and fits the lags.

    Edges are given with the smallest lag that is certain. Where all of a node's predecessors together would
    let it start earlier than it did, the difference is added to each of its edges: it stays a delay that
    nothing in the graph explains. Edges that the measurement contradicts are dropped.
    """

    origin_ns: int
    _nodes: dict[str, list[NDArray[Any]]] = field(default_factory=dict)
    _edges: dict[str, list[NDArray[Any]]] = field(default_factory=dict)
    _count: int = 0

    def add_nodes(
        self,
        kind: NodeKind,
        rank: int,
        measured_ns: Int64,
        *,
        event: Int64 | None = None,
        step: Int64 | None = None,
        duration_ns: Int64 | None = None,
        collective: Int64 | None = None,
    ) -> Int64:
        """Add moments (times on the common clock) and return their provisional numbers."""
        size = len(measured_ns)
        columns: _Columns = {
            "kind": np.full(size, int(kind), dtype=np.int8),
            "rank": np.full(size, rank, dtype=np.int32),
            "measured_ns": np.asarray(measured_ns, dtype=np.int64) - self.origin_ns,
            "event": np.full(size, MISSING, dtype=np.int64) if event is None else event,
            "step": np.full(size, MISSING, dtype=np.int64) if step is None else step,
            "collective": np.full(size, MISSING, dtype=np.int64) if collective is None else collective,
            "duration_ns": np.zeros(size) if duration_ns is None else duration_ns.astype(np.float64),
        }
        for name, column in columns.items():
            self._nodes.setdefault(name, []).append(column)
        numbers = np.arange(self._count, self._count + size, dtype=np.int64)
        self._count += size
        return numbers

    def add_edges(
        self,
        kind: EdgeKind,
        source: Int64,
        target: Int64,
        lag_ns: Int64 | NDArray[np.float64] | float = 0.0,
        *,
        after_end: bool = False,
    ) -> None:
        """Let each target wait for its source. MISSING sources are skipped."""
        keep = (source != MISSING) & (target != MISSING)
        size = int(keep.sum())
        lag = np.broadcast_to(np.asarray(lag_ns, dtype=np.float64), source.shape)[keep]
        columns = {
            "source": source[keep],
            "target": target[keep],
            "kind": np.full(size, int(kind), dtype=np.int8),
            "after_end": np.full(size, after_end, dtype=np.bool_),
            "lag_ns": lag,
        }
        for name, column in columns.items():
            self._edges.setdefault(name, []).append(column)

    def finish(self, steps: tuple[int, ...]) -> Graph:
        """Number the nodes in order of time, drop contradicted edges, fit the lags."""
        node = {name: np.concatenate(parts) for name, parts in self._nodes.items()}
        edge = {name: np.concatenate(parts) for name, parts in self._edges.items()}
        # At equal times by kind: arrivals before their meeting, the meeting before the transfers.
        order = np.lexsort((np.arange(self._count), node["kind"], node["measured_ns"]))
        number = np.empty(self._count, dtype=np.int64)
        number[order] = np.arange(self._count)
        node = {name: column[order] for name, column in node.items()}
        edge["source"], edge["target"] = number[edge["source"]], number[edge["target"]]
        edge = _possible(node, edge)
        edge["unexplained_ns"] = _unexplained(node, edge)[edge["target"]]
        edge["lag_ns"] = edge["lag_ns"] + edge["unexplained_ns"]
        first = np.searchsorted(edge["target"], np.arange(self._count + 1))
        return Graph(Nodes(**node), Edges(**edge, first=first), self.origin_ns, steps)


_Columns = dict[str, Any]  # arrays of mixed dtype, checked when they become Nodes and Edges


def _earliest(node: _Columns, edge: _Columns) -> NDArray[np.float64]:
    """When each edge alone would let its target start."""
    source = edge["source"]
    end = node["measured_ns"][source] + np.where(edge["after_end"], node["duration_ns"][source], 0.0)
    return np.asarray(end + edge["lag_ns"], dtype=np.float64)


def _possible(node: _Columns, edge: _Columns) -> _Columns:
    """The edges that the measured times do not contradict, sorted by target."""
    fits = _earliest(node, edge) <= node["measured_ns"][edge["target"]]
    keep = np.flatnonzero(fits & (edge["source"] < edge["target"]))
    keep = keep[np.argsort(edge["target"][keep], kind="stable")]
    return {name: column[keep] for name, column in edge.items()}


def _unexplained(node: _Columns, edge: _Columns) -> NDArray[np.float64]:
    """Per node: measured start minus the latest start that its edges ask for; 0 for nodes without edges."""
    latest = np.full(len(node["kind"]), -np.inf)
    np.maximum.at(latest, edge["target"], _earliest(node, edge))
    slack = node["measured_ns"] - latest
    return np.where(np.isfinite(latest), slack, 0.0)
