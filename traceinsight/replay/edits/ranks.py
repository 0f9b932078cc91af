"""A straggler that comes with the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceinsight.base.units import format_ranks
from traceinsight.replay.edits.edit import NotApplicableError
from traceinsight.replay.edits.late_batches import Batches, bring_in_time
from traceinsight.replay.facts import Facts
from traceinsight.replay.graph import EdgeKind, Graph, NodeKind
from traceinsight.trace.trace_set import MatchedCollective


@dataclass(frozen=True, slots=True)
class NoStraggler:
    """``no-straggler=<rank>[+<rank>...]``: these ranks come with the last of the others, no earlier.

    Model: before each collective at which one of them is last, its batch comes with the others' if its loader
    made it wait longer; by what is left of its lateness, its own work and host time since the collective
    before shrinks. Assumes that whatever makes it late lies between the two, and that loaders which the
    others did not wait for keep up with the shorter step.
    """

    ranks: tuple[int, ...]
    uncertainty: float = 0.10

    @property
    def text(self) -> str:
        """``no-straggler=2+6+7``."""
        return "no-straggler=" + "+".join(map(str, self.ranks))

    def apply(self, graph: Graph, facts: Facts) -> Graph:
        """Shrink each late rank's time between collectives."""
        known = {trace.rank for trace in facts.trace_set.ranks}
        if not set(self.ranks) < known:
            absent = sorted(set(self.ranks) - known)
            if not absent:
                raise NotApplicableError("it names every captured rank: there is none left to come with")
            named = f"rank {absent[0]} was" if len(absent) == 1 else f"ranks {format_ranks(absent)} were"
            raise NotApplicableError(f"{named} not captured")
        duration, lag = graph.nodes.duration_ns.copy(), graph.edges.lag_ns.copy()
        batches, in_time = Batches(facts.trace_set), set[tuple[int, int]]()
        shrunk = False
        for rank in self.ranks:
            for late in _late_intervals(graph, facts, rank, self.ranks):
                shrunk = True
                batch = batches.behind(late.collective, rank, self.ranks)
                waited_ns = min(batch.late_ns, late.excess_ns) if batch is not None else 0.0
                if batch is not None and (rank, batch.fetch) not in in_time:
                    in_time.add((rank, batch.fetch))
                    bring_in_time(graph, rank, batch, lag)
                own_ns = late.end_ns - late.begin_ns - waited_ns
                if late.excess_ns > waited_ns:
                    keep = 1 - (late.excess_ns - waited_ns) / own_ns
                    _scale_between(graph, rank, late.begin_ns, late.end_ns, keep, duration, lag)
        if not shrunk:
            raise NotApplicableError("none of these ranks came last at a collective")
        return graph.with_durations(duration).with_lags(lag)


@dataclass(frozen=True, slots=True)
class _Late:
    """A late arrival, ns after the graph's origin: since the collective before released the rank."""

    collective: MatchedCollective
    begin_ns: float
    end_ns: float
    excess_ns: float


def _late_intervals(graph: Graph, facts: Facts, rank: int, group: Sequence[int]) -> list[_Late]:
    """What lies before each late arrival of one rank."""
    met: list[tuple[float, float, float, MatchedCollective]] = []
    for one in facts.trace_set.collectives:
        if rank not in one.ranks or not one.synchronising or one.step not in graph.steps:
            continue
        arrival = one.starts_ns[one.ranks.index(rank)]
        others = [start for other, start in zip(one.ranks, one.starts_ns, strict=True) if other not in group]
        late = max(0, arrival - max(others)) if others else 0
        end = one.ends_ns[one.ranks.index(rank)]
        met.append((float(arrival - graph.origin_ns), float(end - graph.origin_ns), float(late), one))
    intervals: list[_Late] = []
    released = 0.0
    for arrived, ended, excess, one in sorted(met, key=lambda each: each[:3]):
        if excess > 0 and arrived > released:
            intervals.append(_Late(one, released, arrived, min(excess, arrived - released)))
        released = max(released, ended)
    return intervals


CLOCK_SLACK_NS = 200_000
"""By how much a profiler's GPU times may be off against the host's."""


def _scale_between(
    graph: Graph,
    rank: int,
    begin: float,
    end: float,
    factor: float,
    duration: NDArray[np.float64],
    lag: NDArray[np.float64],
) -> None:
    """Scale what of the rank's own work and host time was measured in an interval, in place.

    Of what reaches over the interval's beginning, only the part inside is scaled.
    """
    nodes, edges = graph.nodes, graph.edges
    mine = nodes.rank == rank
    started = nodes.measured_ns.astype(np.float64)
    work = np.flatnonzero(mine & (nodes.kind == NodeKind.WORK) & (started <= end))
    duration[work] *= 1 - (1 - factor) * _share_inside(started[work], nodes.duration_ns[work], begin)
    # The launch of the late arrival may be recorded a little after its start on the device.
    reached = mine & (started > begin) & (started <= end + CLOCK_SLACK_NS)
    # After a wait comes the host's own time, too: that is the lag of a SYNC edge.
    kinds = (EdgeKind.HOST_TIME, EdgeKind.LAUNCH, EdgeKind.SYNC)
    own = np.flatnonzero(np.isin(edges.kind, kinds) & reached[edges.target] & (edges.lag_ns > 0))
    since = started[edges.source[own]] + np.where(
        edges.after_end[own], nodes.duration_ns[edges.source[own]], 0.0
    )
    lag[own] *= 1 - (1 - factor) * _share_inside(since, started[edges.target[own]] - since, begin)


def _share_inside(
    start: NDArray[np.float64], length: NDArray[np.float64], begin: float
) -> NDArray[np.float64]:
    """Which share of each span comes after ``begin``."""
    inside = np.clip(start + length - begin, 0, length)
    return np.asarray(np.divide(inside, length, out=np.zeros_like(inside), where=length > 0))
