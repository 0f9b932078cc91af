"""Relieving the host: no synchronisation in the step, no waiting for input, fewer launches."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from traceinsight.base import intervals
from traceinsight.replay.edits.edit import NotApplicableError
from traceinsight.replay.facts import Facts
from traceinsight.replay.graph import Bool, EdgeKind, Graph, NodeKind
from traceinsight.trace.activity import input_spans
from traceinsight.trace.recording import MISSING

NEVER_NS = -1e18
"""A lag that lets an edge bind nothing."""


@dataclass(frozen=True, slots=True)
class NoHostStall:
    """``no-host-stall``: the host never waits for the device inside a step.

    Model: synchronising calls return at once, except those of the sparse data distribution, which needs the
    split sizes on the host. Assumes the code after the call can do without the value it waited for.
    """

    uncertainty: float = 0.15

    @property
    def text(self) -> str:
        """``no-host-stall``."""
        return "no-host-stall"

    def apply(self, graph: Graph, facts: Facts) -> Graph:
        """Cut the waits of the host for the device."""
        if not facts.trace_set.has_gpu:
            raise NotApplicableError("a CPU rank waits for collectives only, not for a device")
        needed = in_data_distribution(graph, facts)
        waits = (graph.edges.kind == EdgeKind.SYNC) & ~needed[graph.edges.target]
        if not waits.any():
            raise NotApplicableError("no host synchronisation outside the sparse data distribution")
        return graph.with_lags(np.where(waits, NEVER_NS, graph.edges.lag_ns))


def in_data_distribution(graph: Graph, facts: Facts) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """The host's moments inside the sparse data distribution, shape (n_nodes,)."""
    inside = np.zeros(len(graph.nodes.kind), dtype=np.bool_)
    for trace in facts.trace_set.ranks:
        own = np.flatnonzero(
            (graph.nodes.kind == NodeKind.HOST)
            & (graph.nodes.rank == trace.rank)
            & (graph.nodes.event != MISSING)
        )
        events = trace.recording.events
        call = graph.nodes.event[own]
        phases = trace.annotations.phases_at(events.lane[call].astype(np.int64), events.start_ns[call])
        inside[own] = [phase == "sparse_data_dist" for phase in phases]
    return inside


@dataclass(frozen=True, slots=True)
class NoInputWait:
    """``no-input-wait``: the next batch is there when the step begins.

    Model: host time inside data-loader and batch-loading annotations vanishes, and no batch is waited
    for. Assumes loading can run beside the step without slowing it.
    """

    uncertainty: float = 0.10

    @property
    def text(self) -> str:
        """``no-input-wait``."""
        return "no-input-wait"

    def apply(self, graph: Graph, facts: Facts) -> Graph:
        """Take the time spent fetching input out of the host's time."""
        lag = np.where(graph.edges.kind == EdgeKind.INPUT, NEVER_NS, graph.edges.lag_ns)
        # The host's own time after what it waited for, too: the fetch may follow in the same idle time.
        host = np.isin(graph.edges.kind, (EdgeKind.HOST_TIME, EdgeKind.SYNC))
        ended = np.where(graph.edges.after_end, graph.nodes.duration_ns[graph.edges.source], 0.0)
        for trace in facts.trace_set.ranks:
            own = np.flatnonzero(host & (graph.nodes.rank[graph.edges.target] == trace.rank))
            shift = graph.origin_ns + facts.trace_set.offset_ns(trace.rank)
            begin = graph.nodes.measured_ns[graph.edges.source[own]] + ended[own].astype(np.int64) + shift
            end = graph.nodes.measured_ns[graph.edges.target[own]] + shift
            spans = input_spans(trace)
            fetching = intervals.covered_before(spans, end) - intervals.covered_before(spans, begin)
            lag[own] = np.where(fetching > 0, np.maximum(lag[own] - fetching, 0), lag[own])
        if (lag == graph.edges.lag_ns).all():
            raise NotApplicableError("no data-loader or batch-loading time was recorded")
        return graph.with_lags(lag)


@dataclass(frozen=True, slots=True)
class Fuse:
    """``fuse``: small kernels are fused (torch.compile, fused optimizers), so there are fewer launches.

    Model: of consecutive kernels shorter than ``SMALL_NS`` each ``FUSED`` become one: the usual time between
    two such launches shrinks to 1/``FUSED`` (a longer gap holds something else and keeps the rest), and their
    device time to ``KEPT_WORK`` (intermediate results stay in registers). Assumes a compiler that finds them;
    attention, GEMM, embedding and unknown kernels stay, copies too, and what is fused already.
    """

    uncertainty: float = 0.40

    SMALL_NS = 20_000
    FUSED = 4
    KEPT_WORK = 0.5

    @property
    def text(self) -> str:
        """``fuse``."""
        return "fuse"

    def apply(self, graph: Graph, facts: Facts) -> Graph:
        """Shrink the host time and the device time of small kernels."""
        nodes, edges = graph.nodes, graph.edges
        fusible = np.isin(facts.family, ("elementwise", "reduction", "optimizer"))
        small = (nodes.kind == NodeKind.WORK) & fusible & (nodes.duration_ns < self.SMALL_NS)
        found = bool(small.any())
        small &= ~_fused_already(graph, facts, small)
        if not small.any():
            fused = "all small kernels of families that can be fused are fused already"
            raise NotApplicableError(
                fused if found else "no small kernel of a family that can be fused was recorded"
            )
        launches = edges.kind == EdgeKind.LAUNCH
        launching = np.zeros(len(nodes.kind), dtype=np.bool_)
        launching[edges.source[launches & small[edges.target]]] = True
        before = (edges.kind == EdgeKind.HOST_TIME) & launching[edges.target]
        usual = float(np.median(edges.lag_ns[before])) if before.any() else 0.0
        launching_ns = np.minimum(edges.lag_ns, usual)
        lag = np.where(before, edges.lag_ns - launching_ns * (1 - 1 / self.FUSED), edges.lag_ns)
        duration = np.where(small, nodes.duration_ns * self.KEPT_WORK, nodes.duration_ns)
        return graph.with_durations(duration).with_lags(lag)


_FUSED = re.compile(r"^triton_|nvfuser|fused", re.IGNORECASE)
"""Names that compilers (Inductor's Triton, nvFuser) and libraries give to what they have fused."""


def _fused_already(graph: Graph, facts: Facts, candidates: Bool) -> Bool:
    """Which of these nodes run the output of a compiler, or a kernel made by fusing; shape (n_nodes,)."""
    nodes = graph.nodes
    fused = np.zeros(len(nodes.kind), dtype=np.bool_)
    for trace in facts.trace_set.ranks:
        own = np.flatnonzero(candidates & (nodes.rank == trace.rank) & (nodes.event != MISSING))
        names, place = np.unique(trace.recording.events.name[nodes.event[own]], return_inverse=True)
        known = [_FUSED.search(trace.recording.strings[name]) is not None for name in names.tolist()]
        fused[own] = np.array(known, dtype=np.bool_)[place]
    return fused
