"""Another network, other topologies of the exchange, more work per exchange."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceinsight.base.hardware import NETWORKS
from traceinsight.replay.edits.edit import NotApplicableError
from traceinsight.replay.edits.host import NEVER_NS, in_data_distribution
from traceinsight.replay.edits.payload import scale_transfers
from traceinsight.replay.facts import Facts, payload_bytes
from traceinsight.replay.graph import EdgeKind, Graph, NodeKind
from traceinsight.trace.recording import MISSING
from traceinsight.trace.trace_set import MatchedCollective


@dataclass(frozen=True, slots=True)
class FasterNetwork:
    """``network=<GB/s per node | preset>``: collectives that leave a node run at another bandwidth.

    Model: what each transfer takes beyond its latency becomes its bytes over the new bandwidth, but no less
    than its bytes inside the node take there. An all-to-all sends a rank's off-node part over that rank's
    share of the node; an all-reduce moves 2 (n-1)/n of its size over the whole node, as NCCL's rings do.
    Latencies change by what the table of networks says, where the manifest names the present one. Needs the
    collectives' sizes. Assumes off-node links are the bottleneck now, and that transfers slow no compute.
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
        extra_ns = np.zeros(len(ratio))
        for index, one in enumerate(facts.trace_set.collectives):
            payload_ns = self._payload_ns(one, per_node, facts)
            measured_ns = max(one.ends_ns) - one.last_arrival_ns - facts.latency_ns
            if payload_ns is not None:
                ratio[index] = payload_ns / measured_ns if measured_ns > 0 else 1.0
                extra_ns[index] = self._latency_change_ns(one, per_node, facts)
        if (ratio == 1).all():
            raise NotApplicableError("no collective with a known size crosses nodes")
        return scale_transfers(graph, facts, ratio, extra_ns)

    def _payload_ns(self, one: MatchedCollective, per_node: int, facts: Facts) -> float | None:
        """What the bytes of a collective that crosses nodes take on the new network; None for any other."""
        size, members = payload_bytes(one), len(one.ranks)
        if not one.complete or not size or _nodes_of(one, per_node) < 2:
            return None
        link = facts.gpu.link_gbps * LINK_EFFICIENCY if facts.gpu is not None else float("inf")
        local = min(per_node, members)
        if one.operation == "all_reduce":
            return 2 * (members - 1) / members * size / min(self.node_gbps, link)
        outside = size * (members - local) / members / (self.node_gbps / per_node)
        return max(outside, size * (local - 1) / members / link)

    def _latency_change_ns(self, one: MatchedCollective, per_node: int, facts: Facts) -> float:
        old, new = NETWORKS.get(_present_network(facts)), NETWORKS.get(self.target)
        if old is None or new is None:
            return 0.0
        nodes = _nodes_of(one, per_node)
        hops = 2 * (nodes - 1).bit_length() if one.operation == "all_reduce" else len(one.ranks) - per_node
        return hops * (new.latency_us - old.latency_us) * 1e3


LINK_EFFICIENCY = 0.7
"""Share of NVLink's or xGMI's line rate that collectives inside a node typically reach."""


def _present_network(facts: Facts) -> str:
    hardware = (facts.trace_set.manifest or {}).get("hardware")
    return str(hardware.get("network")) if isinstance(hardware, dict) else ""


def _nodes_of(one: MatchedCollective, per_node: int) -> int:
    return len({rank // per_node for rank in one.ranks})


def ranks_per_node(facts: Facts) -> int | None:
    """How many ranks share a node, from the run manifest; None when it is not there."""
    manifest = facts.trace_set.manifest or {}
    nodes = manifest.get("nodes")
    if isinstance(nodes, list) and nodes and isinstance(nodes[0], dict):
        ranks = nodes[0].get("ranks")
        return len(ranks) if isinstance(ranks, list) else None
    return None


@dataclass(frozen=True, slots=True)
class LargerBatch:
    """``batch=<k>``: k times the examples per step. The step grows; time per example is what to compare.

    Model: what kernels take beyond ``KERNEL_FLOOR_NS``, and payloads beyond the latency, grow k times; host
    time and optimizers stay. Assumes memory suffices.
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
        grown = np.maximum(duration - KERNEL_FLOOR_NS, 0) * (self.factor - 1)
        return edited.with_durations(np.where(batch_work, duration + grown, duration))


KERNEL_FLOOR_NS = 3_000
"""What even an empty kernel takes: 2 to 3 us on current GPUs."""


@dataclass(frozen=True, slots=True)
class Overlap:
    """``overlap=<phase>``: nothing on the device waits for this phase's exchanges inside the step.

    Model: waits for the transfers of the phase are cut, as when a pipeline starts them a step earlier, and no
    other exchange queues behind them; they still take place and still follow each other. Assumes compute is
    not slowed by them.
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
        if self.phase == "sparse_data_dist":  # the counts, too, are there before the host asks for them
            counts = (graph.edges.kind == EdgeKind.SYNC) & in_data_distribution(graph, facts)[
                graph.edges.target
            ]
            waits |= counts
        return _let_pass(graph.with_lags(np.where(waits, NEVER_NS, graph.edges.lag_ns)), transfers)


def _let_pass(graph: Graph, passed: NDArray[np.bool_]) -> Graph:
    """Let what follows these transfers on their stream follow what was before them, and them each other."""
    nodes, edges = graph.nodes, graph.edges
    stream = np.flatnonzero(edges.kind == EdgeKind.STREAM)
    before = dict(zip(edges.target[stream].tolist(), edges.source[stream].tolist(), strict=True))
    arrived = np.flatnonzero(nodes.kind == NodeKind.ARRIVAL)
    keys = zip(nodes.rank[arrived].tolist(), nodes.collective[arrived].tolist(), strict=True)
    arrival = dict(zip(keys, arrived.tolist(), strict=True))

    def arrival_of(transfer: int) -> int:
        return arrival[int(nodes.rank[transfer]), int(nodes.collective[transfer])]

    lag = edges.lag_ns.copy()
    pairs: list[tuple[int, int]] = []
    last: dict[int, int] = {}  # rank -> its last transfer of this kind
    for at in stream[passed[edges.source[stream]]].tolist():
        target, source = int(edges.target[at]), int(edges.source[at])
        lag[at] = NEVER_NS
        while source != MISSING and passed[source]:
            source = before.get(arrival_of(source), MISSING)
        if source != MISSING:
            pairs.append((source, target))
    for transfer in np.flatnonzero(passed).tolist():
        rank = int(nodes.rank[transfer])
        if rank in last:
            pairs.append((last[rank], arrival_of(transfer)))
        last[rank] = transfer
    more = np.array([pair for pair in pairs if pair[0] < pair[1]], dtype=np.int64).reshape(-1, 2)
    return graph.with_lags(lag).with_more_edges(EdgeKind.STREAM, more[:, 0], more[:, 1])
