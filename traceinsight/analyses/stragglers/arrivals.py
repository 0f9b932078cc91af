"""The arrivals at one step's synchronising collectives, as a table on the common clock."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from traceinsight.base.statistics import median_of_others
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
        incomplete: Shape (n_collectives,): a member's part was not recorded.
        comparable: Shape (n_collectives,): enough of the group was captured to say who came late.
        lost: Shape (n_collectives, n_ranks): captured members whose part in the collective was lost.
        rounds: Shape (n_collectives,). Groups that run the same collective side by side, as the blocks of 2D
            parallelism do, share a number: no rank is in two of them.

    """

    step: int
    ranks: tuple[int, ...]
    times_ns: NDArray[np.float64]
    ends_ns: NDArray[np.float64]
    origin_ns: int
    incomplete: NDArray[np.bool_]
    comparable: NDArray[np.bool_]
    lost: NDArray[np.bool_]
    rounds: NDArray[np.int64]

    def lag_ns(self) -> NDArray[np.float64]:
        """Arrival behind the median member, per collective and rank."""
        median: NDArray[np.float64] = np.nanmedian(self.times_ns, axis=1, keepdims=True)
        lag: NDArray[np.float64] = self.times_ns - median
        return lag

    def late_by_round_ns(self) -> NDArray[np.float64]:
        """How far each rank came behind the median of its own group's others, shape (n_rounds, n_ranks).

        The others', because two of four would else be behind a median that is half their own.
        """
        found = np.zeros((int(self.rounds.max()) + 1, len(self.ranks)))
        for number, times in zip(self.rounds.tolist(), self.times_ns, strict=True):
            part = np.flatnonzero(~np.isnan(times))
            late = times[part] - median_of_others(times[part])
            found[number, part] = np.maximum(found[number, part], late)
        return found

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

    def held_up_by(self, group: Sequence[int]) -> NDArray[np.bool_]:
        """Which other ranks meet the group where it comes last or, through others, meet it later on."""
        part = ~np.isnan(self.times_ns)
        last = self.gaps_ns(group) > 0
        reached = np.zeros(len(self.ranks), dtype=np.bool_)
        for row in np.argsort(self.latest_ns(self.ranks), kind="stable").tolist():
            if last[row] or (part[row] & reached).any():
                reached |= part[row]
        return reached & ~self.columns(group)

    def after_last_ns(self) -> NDArray[np.float64]:
        """Median end after the last recorded arrival, per collective."""
        after: NDArray[np.float64] = np.nanmedian(self.ends_ns, axis=1) - self.latest_ns(self.ranks)
        return after

    def hidden_ns(self, group: Sequence[int]) -> float:
        """How late the group may have been in all where a member's part was lost: at most until the end."""
        lost = self.lost[:, self.columns(group)].any(axis=1)
        return float(np.maximum(self.after_last_ns()[lost], 0).sum())

    def only_comparable(self) -> Arrivals:
        """Without the collectives of which too little was captured."""
        kept = self.comparable
        return replace(
            self,
            times_ns=self.times_ns[kept],
            ends_ns=self.ends_ns[kept],
            incomplete=self.incomplete[kept],
            comparable=self.comparable[kept],
            lost=self.lost[kept],
            rounds=self.rounds[kept],
        )

    def mended(self, group: Sequence[int]) -> Arrivals:
        """The same step if the group had come with the last of the others.

        Whoever the group made wait goes on earlier from there, and so arrives earlier later in the step: as
        far as it then was late itself, no further, so that nobody else looks late for it.
        """
        times = self.times_ns.copy()
        ahead = np.zeros(len(self.ranks))  # by how much each rank is ahead of what was measured
        mine = self.columns(group)
        for row in np.argsort(self._latest(times), kind="stable").tolist():
            part = ~np.isnan(times[row])
            moved = part & (ahead > 0)
            times[row] = no_later_than_others(times[row], moved, ahead)
            times[row] = no_later_than_others(times[row], part & mine, np.full(len(ahead), np.inf))
            gain = float(np.max(self.times_ns[row][part])) - float(np.max(times[row][part]))
            released = part | self.lost[row]
            ahead[released] = np.maximum(ahead[released], gain)
        return replace(self, times_ns=times)

    def _latest(self, times: NDArray[np.float64]) -> NDArray[np.float64]:
        latest: NDArray[np.float64] = np.where(np.isnan(times), -np.inf, times).max(axis=1)
        return latest


def no_later_than_others(
    row: NDArray[np.float64], moved: NDArray[np.bool_], by_ns: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Bring the moved ranks forward by at most ``by_ns``, but not before the last of the others."""
    others = ~moved & ~np.isnan(row)
    if not moved.any() or not others.any():
        return row
    limit = float(np.max(row[others]))
    earlier = np.maximum(row - by_ns, np.minimum(row, limit))
    return np.where(moved, earlier, row)


def arrivals_by_step(trace_set: TraceSet) -> list[Arrivals]:
    """The arrivals of every steady step that has collectives to judge by."""
    ranks = tuple(trace.rank for trace in trace_set.ranks)
    by_step: dict[int, list[MatchedCollective]] = defaultdict(list)
    for one in trace_set.collectives:
        if one.synchronising:
            by_step[one.step].append(one)
    tables = (_table(step, ranks, by_step[step]) for step in trace_set.steps if by_step[step])
    return [table for table in tables if table.comparable.any()]


def _comparable(one: MatchedCollective) -> bool:
    present = len(one.ranks)
    return present > 1 and present >= MIN_PRESENT_SHARE * (present + len(one.absent_ranks))


def _table(step: int, ranks: tuple[int, ...], chosen: Sequence[MatchedCollective]) -> Arrivals:
    origin = min(min(one.starts_ns) for one in chosen)
    times = np.full((len(chosen), len(ranks)), np.nan)
    column = {rank: at for at, rank in enumerate(ranks)}
    ends = times.copy()
    for row, one in enumerate(chosen):
        for rank, start, end in zip(one.ranks, one.starts_ns, one.ends_ns, strict=True):
            times[row, column[rank]] = start - origin
            ends[row, column[rank]] = end - origin
    return Arrivals(
        step,
        ranks,
        times,
        ends,
        origin,
        incomplete=np.array([not one.complete for one in chosen]),
        comparable=np.array([_comparable(one) for one in chosen]),
        lost=np.array([np.isin(ranks, one.absent_ranks) for one in chosen]),
        rounds=_rounds(chosen),
    )


def _rounds(chosen: Sequence[MatchedCollective]) -> NDArray[np.int64]:
    """A number per collective: the n-th of a kind in its group belongs to the n-th of every group."""
    seen: Counter[tuple[object, ...]] = Counter()
    numbers: dict[tuple[object, ...], int] = {}
    found = []
    for one in chosen:
        kind = (one.operation, one.label, one.phase)
        group = (*kind, one.group or one.members[0].group_name)
        round_ = (*kind, seen[group])
        seen[group] += 1
        found.append(numbers.setdefault(round_, len(numbers)))
    return np.array(found, dtype=np.int64)
