"""What a collective takes once its last member has arrived: alpha-beta models per link.

Two kinds of link: inside a node (NVLink, xGMI) and between nodes, where each GPU has its equal share of the
node's adapters. Sources: Thakur, Rabenseifner, Gropp (2005) for ring and tree costs; nccl-tests'
PERFORMANCE.md for the bytes each algorithm moves.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceinsight.base.hardware import GPUS, NETWORKS
from traceinsight.simulate.spec import Cluster

Int64 = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Fabric:
    """Effective links of a cluster.

    Attributes:
        gpus_per_node: Ranks of a node.
        link_gbps: Inside a node, per GPU and direction, GB/s = bytes per ns.
        share_gbps: Between nodes, per GPU and direction.
        link_latency_ns: Per message to a peer in the node.
        network_latency_ns: Per message to a peer in another node.
        base_ns: Of any collective.

    """

    gpus_per_node: int
    link_gbps: float
    share_gbps: float
    link_latency_ns: float
    network_latency_ns: float
    base_ns: float

    def nodes_of(self, ranks: Sequence[int]) -> Int64:
        """The node of each rank."""
        return np.asarray(ranks, dtype=np.int64) // self.gpus_per_node


def fabric_of(cluster: Cluster) -> Fabric:
    """The links of a specification: datasheet or override, times efficiency."""
    gpu, network = GPUS[cluster.gpu], NETWORKS[cluster.network]
    efficiency = cluster.network_efficiency or network.efficiency
    latency = network.latency_us if cluster.network_latency_us is None else cluster.network_latency_us
    return Fabric(
        gpus_per_node=cluster.gpus_per_node,
        link_gbps=(cluster.link_gbps or gpu.link_gbps) * cluster.link_efficiency,
        share_gbps=(cluster.node_gbps or network.node_gbps) * efficiency / cluster.gpus_per_node,
        link_latency_ns=cluster.link_latency_us * 1e3,
        network_latency_ns=latency * 1e3,
        base_ns=cluster.base_latency_us * 1e3,
    )


def all_to_all_ns(fabric: Fabric, ranks: Sequence[int], size_bytes: NDArray[np.float64]) -> float:
    """All-to-all(v). ``size_bytes[i, j]`` goes from the i-th to the j-th of ``ranks``; what stays is free.

    base + alpha_link * peers inside + alpha_net * peers outside + max over ranks and directions of
    max(bytes inside / link, bytes outside / share): the two kinds of link work at the same time.
    """
    node = fabric.nodes_of(ranks)
    same = node[:, None] == node[None, :]
    inside = np.where(same & ~np.eye(len(node), dtype=np.bool_), size_bytes, 0.0)
    outside = np.where(same, 0.0, size_bytes)
    busiest_inside = max(float(inside.sum(axis=axis).max()) for axis in (0, 1))
    busiest_outside = max(float(outside.sum(axis=axis).max()) for axis in (0, 1))
    peers_inside = int(same.sum(axis=1).max()) - 1
    peers_outside = int((~same).sum(axis=1).max())
    latency = peers_inside * fabric.link_latency_ns + peers_outside * fabric.network_latency_ns
    return (
        fabric.base_ns + latency + max(busiest_inside / fabric.link_gbps, busiest_outside / fabric.share_gbps)
    )


def all_reduce_ns(fabric: Fabric, ranks: Sequence[int], size_bytes: float) -> float:
    """All-reduce of ``size_bytes`` per rank: the better of ring and tree, as NCCL chooses.

    Each rank moves 2 (n-1)/n of the size. Inside a node over its link; between nodes over the adapters of all
    members of a node together, since NCCL runs a ring (or tree) per adapter. Ring latency: 2 (n-1) hops, of
    which 2 (nodes-1) leave a node. Tree latency: 2 ceil(log2) hops of each kind; bandwidth as the ring's.
    """
    members = len(ranks)
    if members < 2:
        return fabric.base_ns
    _, per_node = np.unique(fabric.nodes_of(ranks), return_counts=True)
    nodes, local = len(per_node), int(per_node.min())
    moved = 2 * (members - 1) / members * size_bytes
    bandwidth = fabric.link_gbps if nodes == 1 else fabric.share_gbps * local
    if nodes > 1 and local > 1:
        bandwidth = min(bandwidth, fabric.link_gbps)
    ring = 2 * (members - nodes) * fabric.link_latency_ns + 2 * (nodes - 1) * fabric.network_latency_ns
    tree = 2 * _log2(local) * fabric.link_latency_ns + 2 * _log2(nodes) * fabric.network_latency_ns
    return fabric.base_ns + min(ring, tree) + moved / bandwidth


def _log2(count: int) -> int:
    return max(0, (count - 1).bit_length())
