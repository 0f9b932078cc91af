"""Which ranks share a node."""

from __future__ import annotations

from collections.abc import Mapping

from traceinsight.trace.trace_set import TraceSet


def node_of_ranks(trace_set: TraceSet) -> Mapping[int, str]:
    """The node of every rank of which it is known: from the manifest, else from the host's name."""
    listed = (trace_set.manifest or {}).get("nodes")
    found: dict[int, str] = {}
    for number, node in enumerate(listed if isinstance(listed, list) else []):
        ranks = node.get("ranks") if isinstance(node, dict) else None
        found |= {
            rank: str(number) for rank in (ranks if isinstance(ranks, list) else []) if isinstance(rank, int)
        }
    if found:
        return found
    return {trace.rank: trace.recording.host for trace in trace_set.ranks if trace.recording.host}
