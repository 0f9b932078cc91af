"""Which ranks share a node: from the run manifest, else from the names of their hosts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from traceinsight.base.manifest.cluster import described_nodes
from traceinsight.trace.trace_set import TraceSet


@dataclass(frozen=True, slots=True)
class NodeLayout:
    """Which rank stands on which node.

    Attributes:
        node_of: Rank -> number of its node, for the ranks of which that is known.
        whole: Whether that is every rank of the world.
        described: Whether the manifest says so; else host names do.
        unusable: Why what the manifest says cannot be used, or not for all ranks; None where it can.

    """

    node_of: Mapping[int, int] = field(default_factory=dict)
    whole: bool = False
    described: bool = False
    unusable: str | None = None

    @property
    def ranks_per_node(self) -> int | None:
        """Ranks of a node; None where not all are known or nodes differ."""
        return node_size(self.node_of) if self.whole else None


def node_size(node_of: Mapping[int, int]) -> int | None:
    """Ranks of each node; None where there is no node or nodes differ."""
    sizes = set(Counter(node_of.values()).values())
    return sizes.pop() if len(sizes) == 1 else None


def node_layout(trace_set: TraceSet) -> NodeLayout:
    """By the manifest where it names every rank, else by host names, else what the manifest does name."""
    nodes = described_nodes(trace_set.manifest or {})
    if nodes is None:
        return _by_host(trace_set, "not every rank stands in exactly one")
    node_of = {rank: number for number, ranks in enumerate(nodes) for rank in ranks}
    world = trace_set.world_size
    if not node_of or world is None or set(node_of) == set(range(world)):
        return NodeLayout(node_of, whole=True, described=True) if node_of else _by_host(trace_set, None)
    unusable = f"they do not hold exactly the {world} ranks of the world"
    hosts = _by_host(trace_set, unusable)
    return hosts if hosts.whole else NodeLayout(node_of, described=True, unusable=unusable)


def _by_host(trace_set: TraceSet, unusable: str | None) -> NodeLayout:
    hosts = {trace.rank: trace.recording.host for trace in trace_set.ranks if trace.recording.host}
    numbers = {host: number for number, host in enumerate(dict.fromkeys(hosts.values()))}
    return NodeLayout(
        {rank: numbers[host] for rank, host in hosts.items()},
        whole=bool(hosts) and len(hosts) == trace_set.world_size,
        unusable=unusable,
    )
