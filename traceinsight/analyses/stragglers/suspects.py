"""Which ranks come late together: the group to look at next, with its numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceinsight.analyses.stragglers.arrivals import Arrivals
from traceinsight.analyses.stragglers.freed import FreedTime

TOGETHER_SHARE = 0.5
"""A rank is late together with the worst one if it shares at least this much of its lateness."""

SAME_CEILING_SHARE = 0.95
"""A member without whom the group's mending frees this share of the same is not to blame."""


@dataclass(frozen=True, slots=True)
class Suspects:
    """A group with its numbers, before judgement. Arrays have one entry per step."""

    ranks: tuple[int, ...]
    freed_ns: NDArray[np.float64]
    hidden_ns: NDArray[np.float64]  # how late members may have been where their part was lost
    gaps_ns: NDArray[np.float64]  # of all collectives in which the group came last
    last_share: float
    behind_median_ns: float


def worst_group(steps: Sequence[Arrivals], freed: FreedTime) -> Suspects | None:
    """The rank with most lateness behind the median, with those that share at least half of it."""
    late = np.concatenate([step.late_by_round_ns() for step in steps])
    total = late.sum(axis=0)
    worst = int(total.argmax())
    if total[worst] <= 0:
        return None
    shared = np.minimum(late, late[:, [worst]]).sum(axis=0) / total[worst]
    together = [steps[0].ranks[column] for column in _together(shared).tolist()]
    ranks = _needed(together, steps, freed)
    members = np.flatnonzero(steps[0].columns(ranks))
    gaps = np.concatenate([step.gaps_ns(ranks) for step in steps])
    lags = np.concatenate([np.nan_to_num(step.lag_ns()[:, members]) for step in steps])
    last = gaps > 0
    return Suspects(
        ranks=ranks,
        freed_ns=np.array([freed.ceiling_ns(step, ranks) for step in steps]),
        hidden_ns=np.array([step.hidden_ns(ranks) for step in steps]),
        gaps_ns=gaps[last],
        last_share=float(last.mean()),
        behind_median_ns=weighted_quantile(lags.max(axis=1)[last], 0.5) if last.any() else 0.0,
    )


def _together(shared: NDArray[np.float64]) -> NDArray[np.int64]:
    """Columns of those late together, worst first: down to the largest drop of what is shared with the worst.

    At most half of the ranks: a majority is not late, the others are early.
    """
    order = np.argsort(-shared, kind="stable")
    ordered = shared[order]
    sizes = [size for size in range(1, len(order) // 2 + 1) if ordered[size - 1] >= TOGETHER_SHARE]
    best = max(sizes, key=lambda size: float(ordered[size - 1] - ordered[size]), default=1)
    return order[:best]


def _needed(group: Sequence[int], steps: Sequence[Arrivals], freed: FreedTime) -> tuple[int, ...]:
    """Those of a group (worst first) that must be mended to free what the whole group would.

    The rest came late because one of the others had held them up.
    """
    needed = list(group)
    if len(needed) == 1:
        return tuple(needed)
    held_up = [step.held_up_by(group) for step in steps]

    def freed_ns(ranks: Sequence[int]) -> float:
        return float(
            np.median(
                [freed.ceiling_ns(step, ranks, held) for step, held in zip(steps, held_up, strict=True)]
            )
        )

    enough = SAME_CEILING_SHARE * freed_ns(needed)
    for rank in reversed(group):
        rest = [one for one in needed if one != rank]
        if rest and 0 < enough <= freed_ns(rest):
            needed = rest
    return tuple(sorted(needed))


def typical_ceiling_ns(group: Sequence[int], steps: Sequence[Arrivals], freed: FreedTime) -> float:
    """The median over steps of what mending the group frees."""
    return float(np.median([freed.ceiling_ns(step, group) for step in steps]))


def weighted_quantile(values: NDArray[np.float64], share: float) -> float:
    """The quantile of positive values, each weighed by itself: by time, not by count."""
    positive = np.sort(values[values > 0])
    if not len(positive):
        return 0.0
    weight = np.cumsum(positive)
    return float(positive[np.searchsorted(weight, share * weight[-1])])
