"""What is known of the job beyond its traces: layout, network, settings, tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from traceinsight.trace.nodes import node_size


@dataclass(frozen=True, slots=True)
class Table:
    """An embedding table: rows, values of a row, and how many features look it up."""

    rows: int
    dim: int
    features: int


@dataclass(frozen=True)
class JobFacts:
    """Facts about the job; None or empty where nobody said them.

    Attributes:
        node_of: Rank -> node, of every rank of the world.
        network: The network between nodes, a name of ``NETWORKS``.
        environment: Settings that decide the network path, name -> value.
        tables: All embedding tables.
        wire_formats: Phase (forward, backward) -> number format of the exchanged values ("fp32", "fp8", ...).
        ids_sent_ahead: Whether the next batch's ids are exchanged ahead of its step (a pipeline does it).

    """

    node_of: Mapping[int, int] | None = None
    network: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    tables: Sequence[Table] = ()
    wire_formats: Mapping[str, str] = field(default_factory=dict)
    ids_sent_ahead: bool = False

    @cached_property
    def ranks_per_node(self) -> int | None:
        """Ranks of a node; None when unknown or when nodes differ."""
        return node_size(self.node_of or {})

    @property
    def nodes(self) -> int | None:
        """Number of nodes; None when unknown."""
        return len(set(self.node_of.values())) if self.node_of else None
