"""What leaves a node, and how fast."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from traceinsight.advice.exchanges import latency_of, of_kind
from traceinsight.advice.measurements import Measurements
from traceinsight.advice.rule import NotApplicable
from traceinsight.base.statistics import median
from traceinsight.diagnosis import Collective, CommunicationRow

NO_LAYOUT = NotApplicable(
    "which ranks share a node is not known",
    "Put run.json (traceinsight.capture writes it) beside the traces: its nodes say it.",
)


def crosses_nodes(measurements: Measurements, ranks: Sequence[int]) -> bool:
    """Whether a group has members on several nodes; False when the layout is not known."""
    node_of = measurements.job.node_of or {}
    return len({node_of[rank] for rank in ranks if rank in node_of}) > 1


def off_node_rows(measurements: Measurements, rows: Iterable[CommunicationRow]) -> list[CommunicationRow]:
    """The kinds of which a collective leaves its node."""
    return [
        row
        for row in rows
        if any(
            crosses_nodes(measurements, [*one.ranks, *one.unmatched_ranks])
            for one in of_kind(measurements, row)
        )
    ]


def layout_matters(measurements: Measurements) -> bool:
    """Whether the job may span nodes though nobody says which ranks share one."""
    return measurements.job.node_of is None and (measurements.run.world_size or 1) > USUAL_NODE_RANKS


USUAL_NODE_RANKS = 8
"""Ranks. Nodes of current training clusters hold 8 GPUs: a job of no more needs no layout to be judged."""


def _node_gbps(measurements: Measurements, one: Collective, latency_ns: float) -> float | None:
    """What a node sent to others meanwhile, GB/s, latency taken out; None for a collective inside a node.

    Each member of an exchange sends its off-node part through its node's adapters. Rings of reductions and
    gathers pass every byte once (an all-reduce twice) through each node.
    """
    node_of = measurements.job.node_of
    if node_of is None or not one.transfer_ns or not one.bytes or not crosses_nodes(measurements, one.ranks):
        return None
    members = len(one.ranks)
    placed = [node_of.get(rank) for rank in one.ranks]
    local = max(placed.count(node) for node in set(placed))
    passes = {"all_to_all": local * (members - local) / members, "all_reduce": 2 * (members - 1) / members}
    if one.op not in {*passes, "all_gather", "reduce_scatter"}:
        return None
    sent = one.bytes * passes.get(one.op, (members - 1) / members)
    known_ns = latency_ns if one.op == "all_to_all" else 0.0  # other operations pass fewer messages
    payload_ns = max(one.transfer_ns - known_ns, one.transfer_ns / 2)
    return float(sent / payload_ns) if sent >= MIN_NODE_BYTES else None


MIN_NODE_BYTES = 4_000_000
"""Bytes a node sends. They take 1 ms at the 4 GB/s below which any path is slow; what takes less is
mostly the latency of its messages."""


def best_node_gbps(measurements: Measurements) -> float | None:
    """The bandwidth between nodes that the best kind of collective reaches (median over its collectives).

    None when none that is large enough crosses nodes.
    """
    found = []
    latency = latency_of(measurements).ns
    for row in measurements.communication:
        rates = [
            rate
            for one in of_kind(measurements, row)
            if (rate := _node_gbps(measurements, one, latency)) is not None
        ]
        found += [median(rates)] if rates else []
    return max(found, default=None)
