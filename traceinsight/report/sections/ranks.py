"""One table row per rank, or a summary when there are too many ranks to read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from traceinsight.base.statistics import median
from traceinsight.diagnosis import Diagnosis

MANY_RANKS = 24
"""From here on one line per rank takes more of a screen than the summary, which has at most 15 lines."""

_EXTREMES = 4

Values = Sequence[float | None]
Format = Callable[[float | None], str]


class _OfRank(Protocol):
    @property
    def rank(self) -> int: ...


_Row = TypeVar("_Row", bound=_OfRank)


def medians_by_rank(
    rows: Iterable[_Row], values: Callable[[_Row], Values]
) -> dict[int, tuple[float | None, ...]]:
    """Median over steps of every value, by rank. A value is None where no step measured it."""
    collected: dict[int, list[Values]] = defaultdict(list)
    for row in rows:
        collected[row.rank].append(values(row))
    return {
        rank: tuple(_median(column) for column in zip(*of_steps, strict=True))
        for rank, of_steps in sorted(collected.items())
    }


def late_ranks(diagnosis: Diagnosis) -> set[int]:
    """Ranks of an established straggler group."""
    return {rank for straggler in diagnosis.stragglers for rank in straggler.ranks}


def rank_rows(
    per_rank: Mapping[int, Values],
    formats: Sequence[Format],
    *,
    late: set[int],
    extreme_by: Sequence[int],
    all_ranks: bool,
) -> tuple[tuple[str, ...], ...]:
    """Cells: the rank, then its values. Of many, the extremes of values ``extreme_by`` are."""

    def line(label: str, values: Values) -> tuple[str, ...]:
        return (label, *(form(value) for form, value in zip(formats, values, strict=True)))

    shown = list(per_rank)
    summary: list[tuple[str, ...]] = []
    if is_summarised(per_rank, all_ranks=all_ranks):
        columns = list(zip(*per_rank.values(), strict=True))
        summary = [
            line("median", [_median(column) for column in columns]),
            line("least", [_extreme(column, min) for column in columns]),
            line("most", [_extreme(column, max) for column in columns]),
        ]
        shown = _outstanding(per_rank, late, extreme_by)
    return (
        *summary,
        *(line(f"{rank} late" if rank in late else str(rank), per_rank[rank]) for rank in shown),
    )


def is_summarised(per_rank: Mapping[int, Values], *, all_ranks: bool) -> bool:
    """Whether not every rank gets its line."""
    return len(per_rank) >= MANY_RANKS and not all_ranks


def summary_note(per_rank: Mapping[int, Values], extreme: str, *, all_ranks: bool) -> str:
    """Says which ranks a summarised table shows; empty when it shows all."""
    if not is_summarised(per_rank, all_ranks=all_ranks):
        return ""
    return (
        f" {len(per_rank)} ranks: median, least and most are taken per column; then the late ranks (at most "
        f"{_EXTREMES}) and those with the least and most {extreme}. --all-ranks lists every rank."
    )


def _outstanding(per_rank: Mapping[int, Values], late: set[int], extreme_by: Sequence[int]) -> list[int]:
    """Late ranks and those at both ends; a rank like the median says nothing, however it is sorted."""
    chosen = set(sorted(late & set(per_rank))[:_EXTREMES])
    each = _EXTREMES // len(extreme_by)
    for index in extreme_by:
        values = {rank: value for rank, row in per_rank.items() if (value := row[index]) is not None}
        middle = _median(list(values.values()))
        ordered = sorted((rank for rank in values if values[rank] != middle), key=values.__getitem__)
        chosen |= {*ordered[:each], *ordered[-each:]}
    return sorted(chosen)


def _median(values: Values) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None


def _extreme(values: Values, pick: Callable[[list[float]], float]) -> float | None:
    known = [value for value in values if value is not None]
    return pick(known) if known else None
