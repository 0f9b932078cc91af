"""The slowest link that each process group must cross, and what its datasheet promises."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from traceinsight.base.hardware import GPUS, NETWORKS
from traceinsight.base.manifest.cluster import named_network
from traceinsight.diagnosis import GroupLink
from traceinsight.trace.nodes import node_layout
from traceinsight.trace.trace_set import MatchedCollective, TraceSet

_OTHER_PARTS = re.compile(r"PCI|NVL\b|MIG", re.IGNORECASE)
"""Parts of the same name without the links between all GPUs of a node that the datasheet figure is about."""


def group_links(trace_set: TraceSet) -> list[GroupLink]:
    """One row per process group with at least two members, in the order of their names."""
    groups: dict[str, tuple[int, ...]] = {}
    for one in trace_set.collectives:
        members = _members(one)
        if len(members) > 1:
            groups[_name(one)] = members
    nodes = node_layout(trace_set).node_of
    return [_link(name, members, nodes, trace_set) for name, members in sorted(groups.items())]


def _members(one: MatchedCollective) -> tuple[int, ...]:
    if one.group is not None:
        return tuple(sorted(one.group))
    return tuple(sorted({*one.ranks, *one.absent_ranks})) if one.membership_known else ()


def _name(one: MatchedCollective) -> str:
    """As ``Collective.group`` has it."""
    if one.group is not None:
        return ",".join(map(str, one.group))
    return one.members[0].group_name or "not recorded"


def _link(name: str, members: tuple[int, ...], nodes: Mapping[int, int], trace_set: TraceSet) -> GroupLink:
    if any(rank not in nodes for rank in members):
        return _unknown(name, members, None, "which ranks share a node was not recorded")
    sizes = Counter(nodes[rank] for rank in members)
    if len(sizes) == 1:
        return _inside_a_node(name, members, trace_set.device or "")
    return _between_nodes(name, members, sizes, trace_set.manifest or {})


def _inside_a_node(name: str, members: tuple[int, ...], device: str) -> GroupLink:
    gpu = next((gpu for key, gpu in GPUS.items() if re.search(rf"\b{key}\b", device)), None)
    if gpu is None or _OTHER_PARTS.search(device):
        return _unknown(name, members, 1, f"there is no link datasheet for {device or 'the device'}")
    return GroupLink(
        group=name,
        ranks=list(members),
        nodes=1,
        link=f"links of {gpu.name} inside the node",
        all_to_all_gbps=gpu.link_gbps,
        ring_gbps=gpu.link_gbps,
        reason=None,
    )


def _between_nodes(
    name: str, members: tuple[int, ...], sizes: Counter[int], manifest: Mapping[str, object]
) -> GroupLink:
    """A ring enters and leaves each node once; an all-to-all sends every rank's off-node part through it.

    With n ranks, m of them on the fullest node and S bytes per rank, that node sends m S (n-m)/n, while the
    bus bandwidth counts S (n-1)/n per rank: at most node / m x (n-1)/(n-m).
    """
    network = named_network(manifest)
    if network is None:
        return _unknown(name, members, len(sizes), "the network between the nodes was not recorded")
    node_gbps = NETWORKS[network].node_gbps
    total, most = len(members), max(sizes.values())
    return GroupLink(
        group=name,
        ranks=list(members),
        nodes=len(sizes),
        link=f"network {network} between nodes",
        all_to_all_gbps=node_gbps / most * (total - 1) / (total - most),
        ring_gbps=node_gbps,
        reason=None,
    )


def _unknown(name: str, members: tuple[int, ...], nodes: int | None, reason: str) -> GroupLink:
    return GroupLink(
        group=name,
        ranks=list(members),
        nodes=nodes,
        link=None,
        all_to_all_gbps=None,
        ring_gbps=None,
        reason=reason,
    )
