"""Placing tables, or pieces of tables, on ranks: longest processing time first.

Graham (1969): the most expensive piece first, each to the rank with the least so far. The busiest rank ends
at most 4/3 - 1/(3 ranks) above the best placement there is.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Placement:
    """A new owner for every piece.

    ``owners`` follows the pieces. ``before`` and ``after`` are the busiest rank's cost over the mean of all
    ranks (1 is even); ``moved`` counts the pieces that change their rank.
    """

    owners: tuple[int, ...]
    before: float
    after: float
    moved: int


def place(
    costs: Sequence[float],
    owners: Sequence[int],
    ranks: Sequence[int],
    movable: Sequence[bool] | None = None,
) -> Placement:
    """Place pieces by cost; today's placement stays where the new one is not better.

    Args:
        costs: What each piece costs per step, any unit, not negative.
        owners: The rank of each piece today; must be in ``ranks``.
        ranks: All ranks, those without pieces too.
        movable: Which pieces may change their rank; None: all.

    Raises:
        ValueError: If there are no ranks, lengths differ, or an owner is no rank.

    """
    if not ranks or len(costs) != len(owners) or not set(owners) <= set(ranks):
        raise ValueError("every piece needs a cost and an owner among the ranks")
    free = [at for at in range(len(costs)) if movable is None or movable[at]]
    kept = [at for at in range(len(costs)) if movable is not None and not movable[at]]
    load = per_rank([costs[at] for at in kept], [owners[at] for at in kept], ranks)
    queue = [(cost, rank) for rank, cost in load.items()]
    heapq.heapify(queue)
    today, chosen = per_rank(costs, owners, ranks), list(owners)
    # Of equal pieces those on less loaded ranks come first, and stay where their rank has the least anyway.
    for piece in sorted(free, key=lambda at: (-costs[at], today[owners[at]])):
        while queue[0][0] != load[queue[0][1]]:
            heapq.heappop(queue)
        least, rank = queue[0]
        rank = owners[piece] if load[owners[piece]] == least else rank
        chosen[piece] = rank
        load[rank] += costs[piece]
        heapq.heappush(queue, (load[rank], rank))
    before, after = _unevenness(costs, owners, ranks), _unevenness(costs, chosen, ranks)
    if after >= before:
        return Placement(tuple(owners), before, before, 0)
    moved = sum(new != old for new, old in zip(chosen, owners, strict=True))
    return Placement(tuple(chosen), before, after, moved)


def per_rank(costs: Sequence[float], owners: Sequence[int], ranks: Sequence[int]) -> dict[int, float]:
    """Rank -> the sum of its pieces' costs."""
    found = dict.fromkeys(ranks, 0.0)
    for cost, owner in zip(costs, owners, strict=True):
        found[owner] += cost
    return found


def _unevenness(costs: Sequence[float], owners: Sequence[int], ranks: Sequence[int]) -> float:
    loads = per_rank(costs, owners, ranks).values()
    mean = sum(loads) / len(loads)
    return max(loads) / mean if mean > 0 else 1.0
