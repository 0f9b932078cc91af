"""Saying in a sentence or two why a group is late and what mending only its last rank would bring."""

from __future__ import annotations

from collections.abc import Sequence

from traceinsight.analyses.stragglers.cause import CAUSES
from traceinsight.base.units import format_ns


def describe(
    ranks: Sequence[int], cause: str, excess_ns: int, overload: str, alone: tuple[int, int] | None
) -> str:
    """For a person. ``overload`` says what of it is lookups, and is empty when nothing.

    ``alone`` is (the last rank of a group, what mending only that one would free in ns).
    """
    if cause in CAUSES:
        who = "They spend" if len(ranks) > 1 else f"Rank {ranks[0]} spends"
        why = f"{who} {format_ns(excess_ns)} more per step than the other ranks on {CAUSES[cause]}."
    else:
        why = "The trace does not show what takes longer there than on the other ranks."
    if overload:
        why = f"{why} {overload}"
    if alone is None:
        return why
    last, freed_ns = alone
    others = " and ".join(str(rank) for rank in ranks if rank != last)
    return (
        f"{why} Mending rank {last} alone frees at most about {format_ns(freed_ns)} per step, because "
        f"{others} come{'s' if len(ranks) == 2 else ''} right behind it."
    )
