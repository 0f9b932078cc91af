"""What the shards cost the ranks that own them, and what another placement would make of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from traceinsight.base.units import format_bytes, format_count, format_ns, format_share
from traceinsight.diagnosis import Diagnosis, ShardRow
from traceinsight.diagnosis.placement import Placement
from traceinsight.diagnosis.shards import HEAVY_FACTOR

from ..text import label
from ..theme import Palette, figure

FORMS = {"bytes": format_bytes, "ids": format_count, "ns": format_ns}
"""Units of cost, the one that knows most first, and how a number of each is written."""

_MEANINGS = {
    "bytes": "bytes of rows read and vectors returned per step, as counted",
    "ids": "ids looked up per step, as counted",
    "ns": "the planner's estimate per step, not measured",
}
_SCALES = {
    "bytes": (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)),
    "ids": (("ids", 1.0),),
    "ns": (("ms", 1e6), ("us", 1e3)),
}
_DRAWN_PER_RANK = 24
"""Segments of a bar. The lighter shards of a rank are put together: nobody could see them."""

HEAVY_WORDS = f"a shard of {HEAVY_FACTOR:g} times the mean or more"

_THIN = 32  # ranks; with more of them a line between segments would cover the bars


@dataclass(frozen=True, slots=True)
class Piece:
    """A shard: its cost, its owner, and the proposed one (None where nothing is proposed)."""

    table: str
    rank: int
    proposed_rank: int | None
    amount: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What the shards cost; ``unit`` is one of ``FORMS``, ``meaning`` says of what and from where."""

    pieces: Sequence[Piece]
    ranks: Sequence[int]
    unit: str
    meaning: str


def cost_of(diagnosis: Diagnosis, placement: Placement | None) -> Cost | None:
    """The placement's, where there is one; else what is known of every shard, counted rather than planned."""
    if placement is not None and placement.shards:
        pieces = [Piece(one.table, one.rank, one.proposed_rank, one.cost_bytes) for one in placement.shards]
        meaning = _MEANINGS["bytes"]
        if not placement.measured:
            meaning = f"bytes of rows read and vectors returned per example: {placement.source}"
        return Cost(pieces, [one.rank for one in placement.ranks], "bytes", meaning)
    ranks = sorted({one.rank for one in diagnosis.rank_loads} | {one.rank for one in diagnosis.shards})
    for unit in FORMS:
        amounts = [amount_of(row, unit) for row in diagnosis.shards]
        known = [amount for amount in amounts if amount is not None]
        if any(known) and len(known) == len(amounts):
            pieces = [
                Piece(row.table, row.rank, None, amount)
                for row, amount in zip(diagnosis.shards, known, strict=True)
            ]
            return Cost(pieces, ranks, unit, _MEANINGS[unit])
    return None


def amount_of(row: ShardRow, unit: str) -> float | None:
    """What a shard costs in that unit; None where it is not known."""
    if unit == "ns":
        return row.planned_ns
    if unit == "ids":
        return row.ids_per_step
    if row.read_bytes_per_step is None or row.returned_bytes_per_step is None:
        return None
    return row.read_bytes_per_step + row.returned_bytes_per_step


def load_bars(cost: Cost, colors: Palette) -> go.Figure | None:
    """A bar per rank, cut into its shards, the heaviest at the bottom; the proposed one beside today's.

    Shards of ``HEAVY_FACTOR`` times the mean shard have a colour of their own.
    """
    total = sum(one.amount for one in cost.pieces)
    if not total:
        return None
    mean = total / len(cost.ranks)
    unit, scale = _scale(cost.unit, mean)
    drawing = figure(colors, height=380, x_title="rank", y_title=unit)
    drawing.update_layout(barmode="overlay")
    if all(one.proposed_rank is not None for one in cost.pieces):
        _add_stacks(drawing, cost, scale, colors, proposed=False, width=0.38, offset=-0.4)
        _add_stacks(drawing, cost, scale, colors, proposed=True, width=0.38, offset=0.02)
    else:
        _add_stacks(drawing, cost, scale, colors, proposed=False, width=0.6, offset=-0.3)
    drawing.add_scatter(
        name=f"mean of ranks, {FORMS[cost.unit](mean)}",
        x=[-0.5, len(cost.ranks) - 0.5], y=[mean / scale] * 2,
        mode="lines", line={"color": colors.critical, "dash": "dot", "width": 2}, hoverinfo="skip",
    )  # fmt: skip
    shown = range(0, len(cost.ranks), 1 + len(cost.ranks) // 32)
    drawing.update_xaxes(
        tickvals=list(shown), ticktext=[str(cost.ranks[at]) for at in shown],
        range=[-0.5, len(cost.ranks) - 0.5], showgrid=False,
    )  # fmt: skip
    drawing.update_yaxes(rangemode="tozero")
    return drawing


def _add_stacks(
    drawing: go.Figure,
    cost: Cost,
    scale: float,
    colors: Palette,
    *,
    proposed: bool,
    width: float,
    offset: float,
) -> None:
    """One side. Plotly stacks bars or sets them side by side, never both, so their bases are given."""
    side, color = ("proposed", colors.ink) if proposed else ("today", colors.muted)
    stacks = _stacks(cost, side)
    for heavy, name, fill in ((False, side, color), (True, HEAVY_WORDS, colors.major)):
        some = [one for one in stacks if one.heavy == heavy]
        if some:
            drawing.add_bar(
                name=name,
                legendgroup=name,
                showlegend=not any(one.name == name for one in drawing.data),
                width=width,
                offset=offset,
                x=[one.at for one in some],
                y=[one.amount / scale for one in some],
                base=[one.below / scale for one in some],
                hovertext=[one.said for one in some],
                hovertemplate="%{hovertext}<extra></extra>",
                marker={
                    "color": fill,
                    "line": {"color": colors.paper, "width": 1 if len(cost.ranks) <= _THIN else 0},
                },
            )


@dataclass(frozen=True, slots=True)
class _Segment:
    at: int  # place of its rank on the axis
    below: float
    amount: float
    heavy: bool
    said: str


def _stacks(cost: Cost, side: str) -> list[_Segment]:
    owned: dict[int, list[Piece]] = defaultdict(list)
    for one in cost.pieces:
        new = one.proposed_rank if side == "proposed" else None
        owned[one.rank if new is None else new].append(one)
    total = sum(one.amount for one in cost.pieces)
    least = HEAVY_FACTOR * total / len(cost.pieces)
    found = []
    for at, rank in enumerate(cost.ranks):
        below = 0.0
        for what, amount, single in _segments(owned[rank]):
            said = f"{FORMS[cost.unit](amount)}, {format_share(amount / total)} of all"
            heavy = single and amount >= least
            found.append(_Segment(at, below, amount, heavy, f"rank {rank}, {side}: {what}<br>{said}"))
            below += amount
    return found


def _segments(pieces: list[Piece]) -> list[tuple[str, float, bool]]:
    """(what it is, how much, whether it is a single shard)."""
    ordered = sorted(pieces, key=lambda one: -one.amount)
    rest = ordered[_DRAWN_PER_RANK:]
    shown = [(label(one.table), one.amount, True) for one in ordered[:_DRAWN_PER_RANK]]
    if rest:
        shown.append((f"{len(rest):,} lighter shards", sum(one.amount for one in rest), False))
    return shown


def _scale(unit: str, typical: float) -> tuple[str, float]:
    scales = _SCALES[unit]
    return next((one for one in scales if typical >= one[1]), scales[-1])
