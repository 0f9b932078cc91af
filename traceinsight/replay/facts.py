"""What edits need to know about the nodes of a graph: kernel families, and the collectives behind them."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from traceinsight.base.collective_names import element_bytes, moves_vectors
from traceinsight.base.hardware import GPUS, Gpu
from traceinsight.base.kernel_families import family_of
from traceinsight.replay.graph import Bool, Graph, NodeKind
from traceinsight.trace.recording import MISSING
from traceinsight.trace.trace_set import MatchedCollective, TraceSet


class Facts:
    """Facts about one graph of a run, computed when first asked for."""

    def __init__(self, trace_set: TraceSet, graph: Graph) -> None:
        self.trace_set = trace_set
        self.graph = graph

    @cached_property
    def family(self) -> np.ndarray[tuple[int], np.dtype[np.object_]]:
        """Kernel family of every WORK node, "" for all others; shape (n_nodes,)."""
        nodes = self.graph.nodes
        found = np.full(len(nodes.kind), "", dtype=object)
        for trace in self.trace_set.ranks:
            own = np.flatnonzero(
                (nodes.rank == trace.rank) & (nodes.kind == NodeKind.WORK) & (nodes.event != MISSING)
            )
            names = trace.recording.events.name[nodes.event[own]]
            families = {name: family_of(trace.recording.strings[name]) for name in np.unique(names).tolist()}
            found[own] = [families[name] for name in names.tolist()]
        return found

    def of_collectives(self, kind: NodeKind, wanted: Callable[[MatchedCollective], bool]) -> Bool:
        """The nodes of this kind that belong to a wanted collective; shape (n_nodes,)."""
        keep = np.array([wanted(one) for one in self.trace_set.collectives] + [False], dtype=np.bool_)
        return np.asarray((self.graph.nodes.kind == kind) & keep[self.graph.nodes.collective])

    @cached_property
    def gpu(self) -> Gpu | None:
        """Datasheet of the run's GPU, or None when it is unknown or the run has none."""
        device = (self.trace_set.device or "").upper()
        return next((gpu for key, gpu in GPUS.items() if key in device), None)

    @cached_property
    def quickest_exchange(self) -> MatchedCollective | None:
        """The all-to-all with the shortest transfer, or None where there is no complete one."""
        exchanges = (
            one for one in self.trace_set.collectives if one.operation == "all_to_all" and one.complete
        )
        return min(exchanges, default=None, key=_first_transfer_ns)

    @cached_property
    def latency_ns(self) -> float:
        """The part of an exchange that no payload explains: the quickest all-to-all of the run."""
        quickest = self.quickest_exchange
        if quickest is None:
            return 0.0
        size = payload_bytes(quickest)
        if size is not None and size <= SMALL_PAYLOAD_BYTES:
            return float(_first_transfer_ns(quickest))
        return float(min(_first_transfer_ns(quickest), MAX_LATENCY_NS))


def _first_transfer_ns(one: MatchedCollective) -> int:
    """From the last arrival to the first end."""
    return max(min(one.ends_ns) - one.last_arrival_ns, 0)


SMALL_PAYLOAD_BYTES = 65_536
"""A payload per rank that crosses even a slow network (1 GB/s) within 65 us: its exchange is all latency."""

MAX_LATENCY_NS = 200_000
"""If even the quickest exchange takes longer than this, it carries payload."""


def is_embedding_exchange(one: MatchedCollective) -> bool:
    """Whether a collective moves embedding vectors or their gradients (not ids, not dense gradients)."""
    return moves_vectors(one.operation, one.label, one.phase, payload_dtype(one))


def payload_bytes(one: MatchedCollective) -> int | None:
    """Bytes that the member with the most puts in, or None when sizes were not recorded."""
    return max((part.in_bytes for part in one.members if part.in_bytes is not None), default=None)


def sides(one: MatchedCollective) -> tuple[dict[int, float], dict[int, float]]:
    """Rank -> bytes it puts in, and bytes it gets; ranks of which that was not recorded are left out."""
    pairs = list(zip(one.ranks, one.members, strict=True))
    return (
        {rank: float(part.in_bytes) for rank, part in pairs if part.in_bytes is not None},
        {rank: float(part.out_bytes) for rank, part in pairs if part.out_bytes is not None},
    )


def busiest_bytes(one: MatchedCollective) -> float:
    """Bytes of the rank that puts in or gets most, which bounds the transfer; 0 where not recorded."""
    return max((max(side.values()) for side in sides(one) if side), default=0.0)


def payload_dtype(one: MatchedCollective) -> str | None:
    """The dtype on the wire as recorded, or None."""
    return next((part.dtype for part in one.members if part.dtype), None)


def wire_bytes_per_value(one: MatchedCollective) -> int | None:
    """Bytes per value on the wire, or None when the dtype was not recorded."""
    return element_bytes(payload_dtype(one))
