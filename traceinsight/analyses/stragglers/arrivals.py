"""The arrivals at one step's synchronising collectives, as a table on the common clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traceinsight.trace.trace_set import MatchedCollective, TraceSet

MIN_PRESENT_SHARE = 0.5
"""Of a collective's group at least this share must be captured: the late rank could be an absent one."""


@dataclass(frozen=True, slots=True)
class Arrivals:
    """Arrivals at collectives of one step.

    Attributes:
        step: Step number.
        ranks: The captured ranks, in column order.
        times_ns: Shape (n_collectives, n_ranks), ns after ``origin_ns``; NaN where a rank takes no part.
        ends_ns: Same shape, when each member was released.
        origin_ns: What the times count from, on the common clock.

    """

    step: int
    ranks: tuple[int, ...]
    times_ns: NDArray[np.float64]
    ends_ns: NDArray[np.float64]
    origin_ns: int

    def lag_ns(self) -> NDArray[np.float64]:
        """Arrival behind the median member, per collective and rank."""
        median: NDArray[np.float64] = np.nanmedian(self.times_ns, axis=1, keepdims=True)
        lag: NDArray[np.float64] = self.times_ns - median
        return lag

    def columns(self, ranks: Sequence[int]) -> NDArray[np.bool_]:
        """Which columns belong to these ranks."""
        return np.isin(self.ranks, list(ranks))

    def latest_ns(self, ranks: Sequence[int]) -> NDArray[np.float64]:
        """The last arrival among these ranks, per collective; NaN where none of them takes part."""
        times = self.times_ns[:, self.columns(ranks)]
        latest: NDArray[np.float64] = np.where(np.isnan(times), -np.inf, times).max(axis=1, initial=-np.inf)
        return latest

    def gaps_ns(self, group: Sequence[int]) -> NDArray[np.float64]:
        """How long everybody else waits for the group alone, per collective; <= 0 where it is not last."""
        others = [rank for rank in self.ranks if rank not in group]
        gap = self.latest_ns(group) - self.latest_ns(others)
        return np.where(np.isfinite(gap), gap, 0.0)

    def mended(self, group: Sequence[int]) -> Arrivals:
        """The same step if the group had come with the last of the others."""
        others = [rank for rank in self.ranks if rank not in group]
        limit = self.latest_ns(others)[:, None]
        held_back = np.where(np.isfinite(limit), np.minimum(self.times_ns, limit), self.times_ns)
        return replace(self, times_ns=np.where(self.columns(group)[None, :], held_back, self.times_ns))


def arrivals_by_step(trace_set: TraceSet) -> list[Arrivals]:
    """The arrivals of every steady step that has collectives to judge by."""
    ranks = tuple(trace.rank for trace in trace_set.ranks)
    tables = []
    for step in trace_set.steps:
        chosen = [one for one in trace_set.collectives if one.step == step and _can_judge(one)]
        if chosen:
            tables.append(_table(step, ranks, chosen))
    return tables


def _can_judge(one: MatchedCollective) -> bool:
    present = len(one.ranks)
    return (
        one.synchronising and present > 1 and present >= MIN_PRESENT_SHARE * (present + len(one.absent_ranks))
    )


def _table(step: int, ranks: tuple[int, ...], chosen: Sequence[MatchedCollective]) -> Arrivals:
    origin = min(min(one.starts_ns) for one in chosen)
    times = np.full((len(chosen), len(ranks)), np.nan)
    column = {rank: at for at, rank in enumerate(ranks)}
    ends = times.copy()
    for row, one in enumerate(chosen):
        for rank, start, end in zip(one.ranks, one.starts_ns, one.ends_ns, strict=True):
            times[row, column[rank]] = start - origin
            ends[row, column[rank]] = end - origin
    return Arrivals(step, ranks, times, ends, origin)
