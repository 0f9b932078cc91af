"""Another network, other topologies of the exchange, more work per exchange."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceinsight.base.hardware import NETWORKS
from traceinsight.replay.edits.edit import NotApplicableError
from traceinsight.replay.edits.payload import scale_transfers
from traceinsight.replay.facts import Facts
from traceinsight.replay.graph import EdgeKind, Graph, NodeKind
from traceinsight.trace.trace_set import MatchedCollective


@dataclass(frozen=True, slots=True)
class FasterNetwork:
    """``network=<GB/s per node | preset>``: collectives that leave a node run at another bandwidth.

    Model: the payload part of each transfer scales with measured over new bandwidth per rank. Needs the
    collectives' sizes. Assumes off-node links are their bottleneck now and stay it.
    """

    target: str
    uncertainty: float = 0.20

    @property
    def text(self) -> str:
        """``network=efa_p5``."""
        return f"network={self.target}"

    @property
    def node_gbps(self) -> float:
        """Reachable bandwidth of one node, GB/s per direction."""
        if self.target in NETWORKS:
            return NETWORKS[self.target].node_gbps * NETWORKS[self.target].efficiency
        return float(self.target)

    def apply(self, graph: Graph, facts: Facts) -> Graph:
        """Scale the transfers that cross nodes."""
        per_node = ranks_per_node(facts)
        if per_node is None:
            raise NotApplicableError("which ranks share a node is not known (no run.json)")
        ratio = np.ones(len(facts.trace_set.collectives) + 1)
        for index, one in enumerate(facts.trace_set.collectives):
            measured = _off_node_gbps(one, per_node)
            if measured is not None:
                ratio[index] = measured / (self.node_gbps / per_node)
        if (ratio == 1).all():
            raise NotApplicableError("no collective with a known size crosses nodes")
        return scale_transfers(graph, facts, ratio, np.zeros(len(ratio)))


def ranks_per_node(facts: Facts) -> int | None:
    """How many ranks share a node, from the run manifest; None when it is not there."""
    manifest = facts.trace_set.manifest or {}
    nodes = manifest.get("nodes")
    if isinstance(nodes, list) and nodes and isinstance(nodes[0], dict):
        ranks = nodes[0].get("ranks")
        return len(ranks) if isinstance(ranks, list) else None
    return None


def _off_node_gbps(one: MatchedCollective, per_node: int) -> float | None:
    """Off-node bytes per rank over transfer time, GB/s; None when unknown or when all stays inside."""
    members = len(one.ranks)
    if not one.complete or len({rank // per_node for rank in one.ranks}) < 2:
        return None
    size = max((part.in_bytes for part in one.members if part.in_bytes is not None), default=None)
    transfer = max(one.ends_ns) - one.last_arrival_ns
    if not size or transfer <= 0:
        return None
    return size * (members - min(per_node, members)) / members / transfer


@dataclass(frozen=True, slots=True)
class LargerBatch:
    """``batch=<k>``: k times the examples per step. The step grows; time per example is what to compare.

    Model: kernels and payloads grow k times, latencies and host time stay. Assumes memory suffices.
    """

    factor: float
    uncertainty: float = 0.15

    @property
    def text(self) -> str:
        """``batch=2``."""
        return f"batch={self.factor:g}"

    def apply(self, graph: Graph, facts: Facts) -> Graph:
        """Grow device work and payloads."""
        if not facts.trace_set.has_gpu:
            raise NotApplicableError(
                "on CPU ranks, work that grows with the batch cannot be told from fixed work"
            )
        ratio = np.full(len(facts.trace_set.collectives) + 1, 1.0)
        for index, one in enumerate(facts.trace_set.collectives):
            if one.operation == "all_to_all":
                ratio[index] = self.factor
        edited = scale_transfers(graph, facts, ratio, np.zeros(len(ratio)))
        duration = edited.nodes.duration_ns
        batch_work = (graph.nodes.kind == NodeKind.WORK) & (facts.family != "optimizer")
        return edited.with_durations(np.where(batch_work, duration * self.factor, duration))


@dataclass(frozen=True, slots=True)
class Overlap:
    """``overlap=<phase>``: nothing on the device waits for this phase's exchanges inside the step.

    Model: waits for the transfers of the phase are cut, as when a pipeline starts them a step earlier; the
    exchanges themselves still take place and still follow each other. Assumes compute is not slowed by them.
    """

    phase: str
    uncertainty: float = 0.20

    @property
    def text(self) -> str:
        """``overlap=sparse_data_dist``."""
        return f"overlap={self.phase}"

    def apply(self, graph: Graph, facts: Facts) -> Graph:
        """Cut the waits for the exchanges of the phase."""
        transfers = facts.of_collectives(
            NodeKind.TRANSFER, lambda one: one.operation == "all_to_all" and one.phase == self.phase
        )
        waits = transfers[graph.edges.source] & np.isin(
            graph.edges.kind, (EdgeKind.DEPENDENCY, EdgeKind.SYNC)
        )
        if not waits.any():
            raise NotApplicableError(f"nothing waits for an all-to-all of {self.phase}")
        return graph.with_lags(np.where(waits, -1e18, graph.edges.lag_ns))
