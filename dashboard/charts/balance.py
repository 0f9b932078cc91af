"""How evenly the embedding tables are spread, which shards stand out, and what the planner expected."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import plotly.graph_objects as go

from traceinsight.base.units import format_bytes, format_count, format_factor, format_ns, format_share
from traceinsight.diagnosis import Diagnosis, RankLoad, ShardRow
from traceinsight.diagnosis.shards import HEAVY_FACTOR, LOADS

from ..text import label
from ..theme import Palette, figure
from .shards import FORMS, amount_of

MEASURE_WORDS = {
    "lookup_ns": "lookup<br>time",
    "sent_bytes_per_step": "vectors<br>sent",
    "ids_per_step": "ids",
    "read_bytes_per_step": "bytes<br>read",
    "returned_bytes_per_step": "bytes<br>returned",
    "planned_ns": "planned<br>time",
}
_HEAVIEST = 12
_TEXT_UP_TO = 16  # ranks; with more, numbers do not fit their cells
_DRAWN_SHARDS = 2_000


@dataclass(frozen=True, slots=True)
class Heavy:
    """A shard, what it costs in ``unit``, and how many times the mean shard that is.

    ``of_table``: how many times the mean shard of its own table; None where the table has but one.
    """

    row: ShardRow
    amount: float
    factor: float
    of_table: float | None
    unit: str

    @property
    def is_hot(self) -> bool:
        """Clearly more than the mean shard, as the rules have it."""
        return self.factor >= HEAVY_FACTOR


def heaviest(diagnosis: Diagnosis) -> list[Heavy]:
    """Counted shards, the heaviest first; by ids, else by bytes. Empty where nothing was counted."""
    for unit in ("ids", "bytes"):
        known = [(row, amount) for row in diagnosis.shards if (amount := amount_of(row, unit)) is not None]
        mean = fmean([amount for _, amount in known]) if known else 0.0
        if mean > 0:
            tables: dict[str, list[float]] = defaultdict(list)
            for row, amount in known:
                tables[row.table].append(amount)
            found = [
                Heavy(row, amount, amount / mean, _of_table(amount, tables[row.table]), unit)
                for row, amount in known
            ]
            return sorted(found, key=lambda one: (-one.amount, one.row.rank, one.row.table))
    return []


def _of_table(amount: float, of_table: Sequence[float]) -> float | None:
    return amount / fmean(of_table) if len(of_table) > 1 and any(of_table) else None


def heavy_bars(diagnosis: Diagnosis, colors: Palette) -> go.Figure | None:
    """The heaviest shards against the mean one; hot ones stand out."""
    shown = heaviest(diagnosis)[:_HEAVIEST]
    if not shown:
        return None
    drawing = figure(colors, height=100 + 30 * len(shown), x_title="times the mean shard")
    drawing.add_bar(
        orientation="h",
        y=[f"{number}. {label(one.row.table, 22)}" for number, one in enumerate(shown, start=1)],
        x=[one.factor for one in shown],
        marker_color=[colors.major if one.is_hot else colors.muted for one in shown],
        text=[f"{format_factor(one.factor)}, rank {one.row.rank}" for one in shown],
        textposition="auto",
        customdata=[
            [label(one.row.table), one.row.rank, FORMS[one.unit](one.amount), _words(one)] for one in shown
        ],
        hovertemplate="%{customdata[0]} on rank %{customdata[1]}: %{customdata[2]}<br>%{customdata[3]}"
        "<extra></extra>",
    )  # fmt: skip
    drawing.add_vline(x=1, line={"color": colors.ink, "dash": "dot", "width": 1})
    drawing.update_yaxes(autorange="reversed")
    return drawing


def _words(one: Heavy) -> str:
    what = f"{format_factor(one.factor)} the mean shard"
    share = one.row.share_of_rank
    return what if share is None else f"{what}, {format_share(share)} of its rank's ids"


def balance_map(diagnosis: Diagnosis, colors: Palette) -> go.Figure | None:
    """Every measure of a rank's load over the mean of ranks, so that they can be held side by side."""
    loads = sorted(diagnosis.rank_loads, key=lambda one: one.rank)
    shown = [measure for measure in LOADS if any(getattr(one, measure) for one in loads)]
    if not shown:
        return None
    columns = [_over_mean([getattr(one, measure) for one in loads]) for measure in shown]
    cells = [[column[at] for column in columns] for at in range(len(loads))]
    known = [value for row in cells for value in row if value is not None]
    drawing = figure(colors, height=min(130 + 30 * len(loads), 720), y_title="rank")
    drawing.add_heatmap(
        x=[MEASURE_WORDS[measure] for measure in shown],
        y=[str(one.rank) for one in loads],
        z=cells,
        text=[[format_factor(value) for value in row] for row in cells],
        texttemplate="%{text}" if len(loads) <= _TEXT_UP_TO else None,
        customdata=[[written(one, measure) for measure in shown] for one in loads],
        colorscale=[[0, colors.panel], [1, colors.major]],
        zmin=min(1.0, *known),
        zmax=max(1.5, *known),
        xgap=2,
        ygap=2 if len(loads) <= 64 else 0,
        hoverongaps=False,
        showscale=len(loads) > _TEXT_UP_TO,
        colorbar={"title": {"text": "x mean"}, "thickness": 12},
        hovertemplate="rank %{y}, %{x}: %{customdata}<br>%{text} the mean of ranks<extra></extra>",
    )
    drawing.update_xaxes(type="category", showgrid=False, side="top", tickangle=0)
    drawing.update_yaxes(type="category", showgrid=False, autorange="reversed", nticks=32)
    return drawing


def written(load: RankLoad, measure: str) -> str:
    """One measure of a rank, with its unit."""
    value = getattr(load, measure)
    if measure.endswith("_ns"):
        return format_ns(value)
    return format_count(value) if measure == "ids_per_step" else format_bytes(value)


def _over_mean(values: Sequence[float | None]) -> list[float | None]:
    known = [value for value in values if value is not None]
    mean = fmean(known) if known else 0.0
    return [value / mean if value is not None and mean > 0 else None for value in values]


def planned_against_counted(diagnosis: Diagnosis, colors: Palette) -> go.Figure | None:
    """Every shard: its share of what the planner expected against its share of what was counted."""
    rows = [one for one in diagnosis.shards if one.planned_ns is not None]
    unit = next((unit for unit in ("bytes", "ids") if any(amount_of(one, unit) for one in rows)), None)
    if unit is None:
        return None
    both = [(one, amount) for one in rows if (amount := amount_of(one, unit)) is not None]
    planned = _over_mean([one.planned_ns for one, _ in both])
    counted = _over_mean([amount for _, amount in both])
    points = [
        (x, y, one, amount)
        for x, y, (one, amount) in zip(planned, counted, both, strict=True)
        if x is not None and y is not None
    ][:_DRAWN_SHARDS]
    if not points:
        return None
    most = 1.08 * max(max(x, y) for x, y, *_ in points)
    drawing = figure(
        colors, height=380, x_title="planned, times the mean shard", y_title="counted, times the mean"
    )
    drawing.add_scatter(
        name="as planned", x=[0, most], y=[0, most], mode="lines",
        line={"color": colors.muted, "dash": "dot"}, hoverinfo="skip",
    )  # fmt: skip
    drawing.add_scatter(
        name="shard",
        x=[x for x, *_ in points],
        y=[y for _, y, *_ in points],
        mode="markers",
        marker={
            "size": 9,
            "opacity": 0.8,
            "color": [colors.major if y >= HEAVY_FACTOR * x else colors.muted for x, y, *_ in points],
        },
        customdata=[
            [label(one.table), one.rank, format_ns(one.planned_ns), FORMS[unit](amount)]
            for *_, one, amount in points
        ],
        hovertemplate="%{customdata[0]} on rank %{customdata[1]}<br>planned %{customdata[2]}, counted "
        "%{customdata[3]} per step<extra></extra>",
        showlegend=False,
    )
    drawing.update_xaxes(range=[0, most])
    drawing.update_yaxes(range=[0, most])
    return drawing
