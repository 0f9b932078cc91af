"""The links of a run: from its own exchanges where they show them, else from the tables of hardware."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from traceinsight.base.hardware import NETWORKS
from traceinsight.base.manifest.cluster import named_network
from traceinsight.replay.facts import Facts, busiest_bytes
from traceinsight.replay.links import Links
from traceinsight.trace.nodes import node_layout
from traceinsight.trace.trace_set import MatchedCollective

LINK_EFFICIENCY = 0.7
"""Share of NVLink's or xGMI's line rate that collectives inside a node typically reach."""

LINK_LATENCY_NS = 2_000.0
"""Of one message to a peer in the same node: 1 to 3 us over NVLink or xGMI."""

MAX_BASE_NS = 50_000.0
"""What a collective takes whatever its size and members: 10 to 40 us for the smallest inside one node."""

USUAL_GPUS_PER_NODE = 8
"""Of the servers such jobs run on (DGX and HGX boards, p3dn to p6, MI300X platforms)."""

TELLING_SHARE = 0.1
"""Exchanges below this share of the largest one's bytes say little about bandwidth."""


def links_of(facts: Facts) -> Links:
    """The links as an earlier edit left them, else as the run shows them."""
    return facts.graph.links or _measured(facts)


def _measured(facts: Facts) -> Links:
    layout, network = node_layout(facts.trace_set), named_network(facts.trace_set.manifest or {})
    # Copied traces are often given one host name: a single one says nothing.
    told = layout.described or len(set(layout.node_of.values())) > 1
    known = layout.ranks_per_node if told else None
    named = NETWORKS[network] if network is not None else None
    bare = Links(
        per_node=known or USUAL_GPUS_PER_NODE,
        node_known=known is not None,
        link_gbps=facts.gpu.link_gbps * LINK_EFFICIENCY if facts.gpu is not None else None,
        share_gbps=None,
        base_ns=0.0,
        link_latency_ns=LINK_LATENCY_NS,
        network_latency_ns=named.latency_us * 1e3 if named else 0.0,
    )
    links = _with_latencies(bare, facts)
    inside, outside = _bandwidths(links, facts)
    table = named.node_gbps * named.efficiency / links.per_node if named else None
    held_up = max(links.network_latency_ns / (named.latency_us * 1e3), 1.0) if named else 1.0
    return replace(links, link_gbps=inside or links.link_gbps, share_gbps=outside or table, held_up=held_up)


def _with_latencies(links: Links, facts: Facts) -> Links:
    """The latency of the run's quickest exchange, shared out over its messages.

    What the messages do not take by the tables is the same for every collective, up to ``MAX_BASE_NS``; what
    is left beyond it belongs to the messages between nodes. Where the network is unknown, all that messages
    inside the node leave is the network's; where the messages by the tables would take longer than was
    measured, they are shortened to that.
    """
    quickest = facts.quickest_exchange
    if quickest is None:
        return links
    local = links.nodes_of(quickest.ranks)
    inside, outside = max(local) - 1, len(quickest.ranks) - min(local) if len(local) > 1 else 0
    if outside and not links.network_latency_ns:
        rest = max(facts.latency_ns - inside * links.link_latency_ns, 0.0)
        links = replace(links, network_latency_ns=max(rest / outside, links.link_latency_ns))
    messages = inside * links.link_latency_ns + outside * links.network_latency_ns
    if messages <= facts.latency_ns or not messages:
        rest = facts.latency_ns - messages
        base = min(rest, MAX_BASE_NS) if outside else rest
        more = (rest - base) / outside if outside else 0.0
        return replace(links, base_ns=base, network_latency_ns=links.network_latency_ns + more)
    short = facts.latency_ns / messages
    return replace(
        links,
        link_latency_ns=links.link_latency_ns * short,
        network_latency_ns=links.network_latency_ns * (short if outside else 1.0),
    )


def _bandwidths(links: Links, facts: Facts) -> tuple[float | None, float | None]:
    """(inside a node, between nodes), from the bytes and the transfers of the run's larger all-to-alls."""
    sized = [(one, busiest_bytes(one)) for one in facts.trace_set.collectives if _tells(one)]
    largest = max((size for _, size in sized), default=0)
    moved, taken = [0.0, 0.0], [0.0, 0.0]
    for one, size in sized:
        beyond = transfer_ns(one) - links.latency_ns(one.operation, one.ranks)
        if size < TELLING_SHARE * largest or beyond <= 0:
            continue
        local, members = links.nodes_of(one.ranks), len(one.ranks)
        crosses = len(local) > 1
        moved[crosses] += size * ((members - min(local)) if crosses else members - 1) / members
        taken[crosses] += beyond
    inside, outside = (moved[at] / taken[at] if taken[at] else None for at in (0, 1))
    return inside, outside


def _tells(one: MatchedCollective) -> bool:
    return one.operation == "all_to_all" and one.complete and len(one.ranks) > 1


def latencies_ns(facts: Facts) -> NDArray[np.float64]:
    """The part of each node's transfer that its bytes do not explain, shape (n_nodes,); 0 for other nodes."""
    graph = facts.graph
    if graph.latency_ns is not None:
        return graph.latency_ns
    links = links_of(facts)
    explained = [own_latency_ns(one, links, facts) for one in facts.trace_set.collectives] + [0.0]
    per_node: NDArray[np.float64] = np.array(explained)[graph.nodes.collective]
    return np.minimum(graph.nodes.duration_ns, per_node)


def own_latency_ns(one: MatchedCollective, links: Links, facts: Facts) -> float:
    """Of one collective: modelled for an all-reduce, whose hops are fewer; else the quickest exchange's."""
    if one.operation == "all_reduce" and facts.quickest_exchange is not None:
        return links.latency_ns(one.operation, one.group or one.ranks)
    return facts.latency_ns


def transfer_ns(one: MatchedCollective) -> int:
    """From the last arrival to the last end."""
    return max(max(one.ends_ns) - one.last_arrival_ns, 0)
