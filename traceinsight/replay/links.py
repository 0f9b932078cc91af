"""What links inside a node and between nodes carry.

A collective takes a latency and then moves its bytes (alpha-beta). An all-to-all sends one message to every
peer; a rank's bytes inside the node and those to other nodes travel at the same time. An all-reduce moves
2 (n-1)/n of its size, in 2 ceil(log2) hops of each kind, over all adapters of a node together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from traceinsight.base.hardware import NETWORKS


@dataclass(frozen=True, slots=True)
class Links:
    """Bandwidths are per rank and direction, in GB/s = bytes per ns; None where nothing tells.

    ``node_known`` is False where nobody said which ranks share a node and 8 were assumed. ``held_up``: how
    many times its latency in the hardware table a message to another node takes, at least 1. What holds it up
    (adapters and proxy threads shared with other traffic) is the nodes' and stays when the network changes.
    """

    per_node: int
    node_known: bool
    link_gbps: float | None
    share_gbps: float | None
    base_ns: float
    link_latency_ns: float
    network_latency_ns: float
    held_up: float = 1.0

    def on(self, network: str) -> Links:
        """The same nodes on another network of the table."""
        new = NETWORKS[network]
        share = new.node_gbps * new.efficiency / self.per_node
        return replace(self, share_gbps=share, network_latency_ns=new.latency_us * 1e3 * self.held_up)

    def nodes_of(self, ranks: Iterable[int]) -> list[int]:
        """How many of the ranks each node holds, nodes without any left out."""
        if isinstance(ranks, range) and ranks.start == 0 and ranks.step == 1:  # jobs that need not exist yet
            full, rest = divmod(len(ranks), self.per_node)
            return [self.per_node] * full + [rest] * (rest > 0)
        counts: dict[int, int] = {}
        for rank in ranks:
            counts[rank // self.per_node] = counts.get(rank // self.per_node, 0) + 1
        return list(counts.values())

    def latency_ns(self, operation: str, ranks: Sequence[int]) -> float:
        """What a collective of no size takes."""
        local = self.nodes_of(ranks)
        if operation == "all_reduce":
            ring = len(ranks) - len(local), len(local) - 1
            tree = (max(local) - 1).bit_length(), (len(local) - 1).bit_length()
            return self.base_ns + 2 * min(self._hops_ns(*ring), self._hops_ns(*tree))
        return self.base_ns + self._hops_ns(max(local) - 1, len(ranks) - min(local))

    def _hops_ns(self, inside: int, outside: int) -> float:
        return inside * self.link_latency_ns + outside * self.network_latency_ns

    def payload_ns(self, operation: str, size_bytes: float, ranks: Sequence[int]) -> float | None:
        """What the bytes take that each rank puts in; None where a bandwidth it needs is not known."""
        members, local = len(ranks), self.nodes_of(ranks)
        link, share = self.link_gbps, self.share_gbps
        if members < 2:
            return 0.0
        if operation == "all_reduce":
            moved = 2 * (members - 1) / members * size_bytes
            if len(local) == 1:
                return moved / link if link else None
            if not share:
                return None
            together = share * min(local)
            return moved / (min(together, link) if link and min(local) > 1 else together)
        inside = size_bytes * (max(local) - 1) / members
        outside = size_bytes * (members - min(local)) / members if len(local) > 1 else 0.0
        if (outside and not share) or (not outside and not link):
            return None
        return max(inside / link if link else 0.0, outside / share if share else 0.0)
