"""The critical path: the chain of work and delays that the end of a stretch of steps waited for.

Shortening anything that is not on it does not bring that end forward.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from traceinsight.replay.graph import EdgeKind, Graph, NodeKind
from traceinsight.replay.solve import Times
from traceinsight.trace.recording import MISSING, Int8, Int32, Int64


class PathKind(IntEnum):
    """What a piece of the path is."""

    HOST = 0  # a host thread's own time, up to a launch, a synchronisation or a step mark; or the loader's
    WORK = 1  # device work that no other rank takes part in
    TRANSFER = 2  # a collective after its last member has arrived
    LAUNCH = 3  # from the launch call to the device
    DELAY = 4  # measured, but nothing in the graph accounts for it
    BEFORE = 5  # under way when the stretch began


_LAG_KINDS = {
    EdgeKind.HOST_TIME: PathKind.HOST,
    EdgeKind.LAUNCH: PathKind.LAUNCH,
    EdgeKind.ORIGIN: PathKind.BEFORE,
    EdgeKind.SYNC: PathKind.HOST,
    EdgeKind.INPUT: PathKind.HOST,
}
"""Whose time the lag of an edge is; that of the others is delay."""


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """Pieces in order of time; columns of shape (n_pieces,). Each begins where the one before it ends.

    Times are ns on the common clock. ``rank`` is whose time it is. ``event`` indexes the rank's recording
    (the kernel or collective of WORK and TRANSFER), MISSING for all other kinds.
    """

    start_ns: Int64
    end_ns: Int64
    kind: Int8
    rank: Int32
    event: Int64


_Piece = tuple[float, float, int, int, int]  # start, end, kind, rank, event; ns after the graph's origin


def critical_path(graph: Graph, start_ns: Times) -> CriticalPath:
    """Walk back from the last work of the stretch along the predecessor that came last, to its beginning.

    Time waited for somebody else is never on the path: there the path runs through whom was waited for.

    Args:
        graph: One stretch of steps.
        start_ns: Start of every node, ns after the graph's origin, as :func:`replay` gives it.

    """
    nodes = graph.nodes
    ends = start_ns + nodes.duration_ns
    members = np.flatnonzero(np.isin(nodes.step, graph.steps))
    pieces: list[_Piece] = []
    node = int(members[ends[members].argmax()]) if len(members) else MISSING
    if node != MISSING:
        pieces.append(_own_work(graph, start_ns, node))
    while node != MISSING:
        edge = _binding(graph, ends, start_ns, node)
        if edge == MISSING:
            break
        source = int(graph.edges.source[edge])
        leaves = float(ends[source]) if graph.edges.after_end[edge] else float(start_ns[source])
        pieces += _lag(graph, edge, leaves, float(start_ns[node]))
        if graph.edges.after_end[edge]:
            pieces.append(_own_work(graph, start_ns, source))
        node = source
    return _columns(pieces[::-1], graph.origin_ns)


def _binding(graph: Graph, ends: Times, start_ns: Times, node: int) -> int:
    """The edge that lets a node start last, MISSING for a node that waits for nothing."""
    edges = graph.edges
    mine = slice(int(edges.first[node]), int(edges.first[node + 1]))
    if mine.start == mine.stop:
        return MISSING
    source = edges.source[mine]
    ready = np.where(edges.after_end[mine], ends[source], start_ns[source]) + edges.lag_ns[mine]
    return mine.start + int(ready.argmax())


def _own_work(graph: Graph, start_ns: Times, node: int) -> _Piece:
    nodes = graph.nodes
    kind = PathKind.TRANSFER if nodes.kind[node] == NodeKind.TRANSFER else PathKind.WORK
    begin = float(start_ns[node])
    return begin, begin + float(nodes.duration_ns[node]), kind, int(nodes.rank[node]), int(nodes.event[node])


def _lag(graph: Graph, edge: int, begin: float, end: float) -> list[_Piece]:
    """What lies between a predecessor and its successor, the last piece first: what is known, then delay."""
    edges = graph.edges
    rank = int(graph.nodes.rank[edges.target[edge]])
    kind = _LAG_KINDS.get(EdgeKind(int(edges.kind[edge])), PathKind.DELAY)
    known = end - float(edges.unexplained_ns[edge])
    return [(known, end, PathKind.DELAY, rank, MISSING), (begin, known, kind, rank, MISSING)]


def _columns(pieces: list[_Piece], origin_ns: int) -> CriticalPath:
    """Pieces of no length are left out; neighbours of one kind that stand for no event become one."""
    merged: list[_Piece] = []
    for piece in pieces:
        begin, end, *what = piece
        if round(end) <= round(begin):
            continue
        if merged and merged[-1][2:] == tuple(what) and what[2] == MISSING:
            merged[-1] = (merged[-1][0], end, *merged[-1][2:])
        else:
            merged.append(piece)
    return CriticalPath(
        start_ns=np.array([round(piece[0]) + origin_ns for piece in merged], dtype=np.int64),
        end_ns=np.array([round(piece[1]) + origin_ns for piece in merged], dtype=np.int64),
        kind=np.array([piece[2] for piece in merged], dtype=np.int8),
        rank=np.array([piece[3] for piece in merged], dtype=np.int32),
        event=np.array([piece[4] for piece in merged], dtype=np.int64),
    )
