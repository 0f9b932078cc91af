"""Saying in a sentence or two who is late and why."""

from __future__ import annotations

from collections.abc import Sequence

from traceinsight.analyses.stragglers.cause import CAUSES


def describe(ranks: Sequence[int], cause: str, excess_ns: int, alone: tuple[int, int] | None) -> str:
    """For a person; ``alone`` is (the last rank of a group, what mending only that one would free in ns)."""
    because = CAUSES[cause]
    if excess_ns:
        because += f" ({excess_ns / 1e6:.3g} ms more per step than on the other ranks)"
    sentence = f"{_name(ranks)} late: {because}."
    if alone is None:
        return sentence
    last, freed_ns = alone
    others = [rank for rank in ranks if rank != last]
    return (
        f"{sentence} Mending rank {last} alone frees at most about {freed_ns / 1e6:.2g} ms per step: "
        f"{_name(others)} right behind it."
    )


def _name(ranks: Sequence[int]) -> str:
    if len(ranks) == 1:
        return f"Rank {ranks[0]} is"
    return f"Ranks {', '.join(map(str, ranks[:-1]))} and {ranks[-1]} are"
