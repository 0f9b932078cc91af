"""Batches that came late to some ranks only: how late, and the same graph with them in time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from traceinsight.replay.edits.host import NEVER_NS
from traceinsight.replay.graph import EdgeKind, Graph
from traceinsight.replay.loader import WAITED_NS, all_fetches
from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import MISSING, Int64
from traceinsight.trace.trace_set import MatchedCollective, TraceSet


@dataclass(frozen=True, slots=True)
class LateBatch:
    """A batch for which one rank waited. ``late_ns``: behind the last of the others to have theirs.

    ``others_waited``: one of those waited for its loader, too.
    """

    fetch: int
    late_ns: float
    others_waited: bool


class Batches:
    """The fetches of all ranks of a run, from loaders with processes of their own."""

    def __init__(self, trace_set: TraceSet) -> None:
        self._trace_set = trace_set

    @cached_property
    def _fetches(self) -> dict[int, tuple[RankTrace, Int64]]:
        return {trace.rank: (trace, all_fetches(trace)) for trace in self._trace_set.ranks}

    def behind(self, one: MatchedCollective, rank: int, group: Sequence[int]) -> LateBatch | None:
        """The last batch the rank fetched before it launched a collective, if it waited for that longest.

        None where it did not wait, or had the batch no later than a rank outside the group.
        """
        mine = self._before(one, rank)
        if mine is None or mine[1] < WAITED_NS:
            return None
        others = [self._before(one, other) for other in one.ranks if other not in group]
        known = [other for other in others if other is not None]
        if not known or (late_ns := mine[2] - max(returned for _, _, returned in known)) <= 0:
            return None
        return LateBatch(mine[0], float(late_ns), any(waited >= WAITED_NS for _, waited, _ in known))

    def _before(self, one: MatchedCollective, rank: int) -> tuple[int, int, int] | None:
        """(event, duration, return on the common clock) of a rank's last fetch before its launch."""
        trace, fetches = self._fetches[rank]
        events = trace.recording.events
        launched = one.members[one.ranks.index(rank)].launch_ns
        at = int(np.searchsorted(events.end_ns[fetches], launched, side="right")) - 1
        if at < 0:
            return None
        fetch = int(fetches[at])
        returned = int(events.end_ns[fetch]) - self._trace_set.offset_ns(rank)
        return fetch, int(events.dur_ns[fetch]), returned


def bring_in_time(graph: Graph, rank: int, batch: LateBatch, lag: NDArray[np.float64]) -> None:
    """Let a batch be ready with the last of the others', in place.

    Where none of them waited, it is not waited for. Else its loader takes less for it by as much.
    """
    nodes, edges = graph.nodes, graph.edges
    mine = (edges.kind == EdgeKind.INPUT) & (nodes.rank[edges.target] == rank)
    waits = np.flatnonzero(mine & (nodes.event[edges.target] == batch.fetch))
    if not batch.others_waited:
        lag[waits] = NEVER_NS
        return
    made = np.flatnonzero(np.isin(edges.target, edges.source[waits]) & (nodes.event[edges.target] == MISSING))
    lag[made] = np.maximum(lag[made] - batch.late_ns, 0.0)
