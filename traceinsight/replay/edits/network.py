"""Another network, other topologies of the exchange, more work per exchange."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traceinsight.analyses.host_link import host_link
from traceinsight.base import intervals
from traceinsight.base.hardware import NETWORKS
from traceinsight.base.intervals import Spans
from traceinsight.base.manifest.cluster import named_network
from traceinsight.replay.edits.edit import Explanation, NotApplicableError
from traceinsight.replay.edits.host import NEVER_NS, in_data_distribution
from traceinsight.replay.edits.payload import scale_transfers
from traceinsight.replay.facts import Facts, busiest_bytes
from traceinsight.replay.graph import EdgeKind, Graph, NodeKind
from traceinsight.replay.links import Links
from traceinsight.replay.measured_links import links_of, own_latency_ns, transfer_ns
from traceinsight.trace.recording import MISSING


@dataclass(frozen=True, slots=True)
class FasterNetwork:
    """``network=<GB/s per node | preset>``: the link of a node or host runs at another bandwidth.

    Model, GPU ranks: what each transfer takes beyond its latency becomes its bytes over the new bandwidth,
    but no less than its bytes inside the node take there. An all-to-all sends a rank's off-node part over
    that rank's share of the node; an all-reduce moves 2 (n-1)/n of its size over the whole node, as NCCL's
    rings do. Of the latency the messages to other nodes get the new network's: one per peer in an all-to-
    all, two per doubling of the nodes in an all-reduce; a network given by its bandwidth keeps the present
    one. Needs the collectives' sizes. Assumes off-node links are the bottleneck now. Kernels that ran
    slower beside long transfers get faster where the run shows by how much; else the step is predicted too
    long.

    Model, CPU ranks: they share the link of their host, the loopback where all run on one
    (``analyses.host_link``). Of each transfer, the time in which that link is busy scales with its rate; the
    rest, and so the latency, stays.
    """

    target: str
    uncertainty: float = 0.20

    @property
    def text(self) -> str:
        """``network=efa_p5``."""
        return f"network={self.target}"

    def apply(self, graph: Graph, facts: Facts) -> Graph:
        """Scale the transfers that cross nodes; of CPU ranks all that use the host's link."""
        old = links_of(facts)
        if not facts.trace_set.has_gpu:
            return self._on_host_link(graph, facts, old)
        if not old.node_known:
            raise NotApplicableError("which ranks share a node is not known (no run.json)")
        new = self._links(old)
        ratio = np.ones(len(facts.trace_set.collectives) + 1)
        latency = np.ones(len(ratio))
        for index, one in enumerate(facts.trace_set.collectives):
            size = busiest_bytes(one)
            if not one.complete or not size or len(old.nodes_of(one.ranks)) < 2:
                continue
            before = transfer_ns(one) - own_latency_ns(one, old, facts)
            if graph.links is not None:  # an earlier edit gave the transfers these links
                before = old.payload_ns(one.operation, size, one.ranks) or 0.0
            after = new.payload_ns(one.operation, size, one.ranks)
            ratio[index] = after / before if before > 0 and after is not None else 1.0
            latency[index] = new.latency_ns(one.operation, one.ranks) / max(
                old.latency_ns(one.operation, one.ranks), 1.0
            )
        if (ratio == 1).all():
            crossed = "no collective with a known size crosses nodes"
            same = "the network is as fast already"
            raise NotApplicableError(crossed if graph.links is None else same)
        if graph.links is None and named_network(facts.trace_set.manifest or {}) == self.target:
            _refuse_present_network(self.target, old, new)
        return replace(scale_transfers(graph, facts, ratio, np.zeros(len(ratio)), latency), links=new)

    def _on_host_link(self, graph: Graph, facts: Facts, old: Links) -> Graph:
        """Scale the part of each transfer in which the host's link is busy."""
        ranks = [trace.rank for trace in facts.trace_set.ranks]
        if not old.node_known and len(old.nodes_of(ranks)) > 1:
            raise NotApplicableError("which ranks share a host is not known (no run.json)")
        link = host_link(facts.trace_set, {rank: rank // old.per_node for rank in ranks})
        if link is None:
            raise NotApplicableError("no exchange of known size lasts long enough to tell the link's rate")
        new = self._links(old)
        earlier = graph.links.share_gbps if graph.links is not None else None
        ratio = (earlier or link.gbps / old.per_node) / (new.share_gbps or math.inf)
        carried = _carried_ns(graph, facts, link.busy)
        shorter = graph.with_durations(graph.nodes.duration_ns + carried * (ratio - 1))
        left = shorter.nodes.duration_ns - carried * ratio
        inside = old.link_gbps / ratio if old.link_gbps and len(old.nodes_of(ranks)) == 1 else old.link_gbps
        return replace(
            shorter,
            latency_ns=np.where(graph.nodes.kind == NodeKind.TRANSFER, left, 0.0),
            links=replace(new, link_gbps=inside),
        )

    def _links(self, old: Links) -> Links:
        """A network given by its bandwidth keeps the present latency."""
        if self.target in NETWORKS:
            return old.on(self.target)
        return replace(old, share_gbps=float(self.target) / old.per_node)


def _refuse_present_network(name: str, old: Links, new: Links) -> None:
    """A job may miss the fast path of the network it has; where it does not, the table is no change."""
    measured, table = ((links.share_gbps or 0.0) * links.per_node for links in (old, new))
    if measured >= table:
        raise NotApplicableError(
            f"the job is on {name} already, with {measured:.3g} GB/s per node no slower than the usual "
            f"{table:.3g}"
        )


def _carried_ns(graph: Graph, facts: Facts, busy: Spans) -> NDArray[np.float64]:
    """Of each transfer, as earlier edits left it, the time in which the link carries; shape (n_nodes,).

    What was measured beyond that stays fixed, and so does what an earlier edit called latency.
    """
    nodes = graph.nodes
    transfers = np.flatnonzero(nodes.kind == NodeKind.TRANSFER)
    ends = [dict(zip(one.ranks, one.ends_ns, strict=True)) for one in facts.trace_set.collectives]
    places = zip(nodes.collective[transfers].tolist(), nodes.rank[transfers].tolist(), strict=True)
    end = np.array([ends[collective][rank] for collective, rank in places], dtype=np.int64)
    met = np.minimum(nodes.measured_ns[transfers] + graph.origin_ns, end)
    carried = intervals.covered_before(busy, end) - intervals.covered_before(busy, met)
    fixed = (end - met - carried).astype(np.float64)
    if graph.latency_ns is not None:
        fixed = np.maximum(fixed, graph.latency_ns[transfers])
    found = np.zeros(len(nodes.kind))
    found[transfers] = np.maximum(nodes.duration_ns[transfers] - fixed, 0.0)
    return found


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

    def explain(self, facts: Facts) -> Explanation:  # noqa: ARG002 - the same on every run
        """Each step holds that many more examples."""
        return Explanation(examples_factor=self.factor)

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
    other exchange queues behind them; they still take place and still follow each other. Compute beside them
    gets slower where the run shows by how much.
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
