"""The machines that a run manifest describes: which ranks share a node, and the network between nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

import msgspec
from msgspec import Meta

from traceinsight.base.hardware import NETWORKS
from traceinsight.base.manifest.decode import Rank, converted


class _Node(msgspec.Struct):
    ranks: Annotated[list[Rank], Meta(min_length=1)]


def described_nodes(manifest: Mapping[str, object]) -> list[list[int]] | None:
    """The ranks of each node; empty where none is described, None where that is malformed.

    A rank that stands in two nodes is malformed, too.
    """
    nodes = converted(manifest.get("nodes") or [], list[_Node])
    if nodes is None:
        return None
    ranks = [rank for node in nodes for rank in node.ranks]
    return [node.ranks for node in nodes] if len(set(ranks)) == len(ranks) else None


def named_network(manifest: Mapping[str, object]) -> str | None:
    """The network between nodes by its name in ``NETWORKS``; None where it has none."""
    hardware = manifest.get("hardware")
    network = hardware.get("network") if isinstance(hardware, Mapping) else None
    return network if isinstance(network, str) and network in NETWORKS else None
