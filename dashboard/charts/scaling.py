"""How a job scales: throughput against ideal, and the parts of the time each step lost."""

from __future__ import annotations

import plotly.graph_objects as go

from traceinsight.base.units import format_factor, format_ns, format_share
from traceinsight.diagnosis.scaling import Scaling

from ..text import label
from ..theme import REPLICA_SYNC, Palette, figure

PART_WORDS = {
    "compute": "longer compute",
    "transfer": "transfer",
    "wait": "wait",
    "replica_sync": "replica sync",
    "unsplit": "unsplit",
    "copy": "copy",
    "idle": "idle",
}

SMALLEST_SHARE = 0.001
"""Of a step. A part that nowhere changes by as much is neither drawn nor listed."""


def throughput(result: Scaling, colors: Palette) -> go.Figure | None:
    """Throughput over that of the smallest run by world size, beside ideal; forecast sizes are hollow."""
    points, ahead = result.points, result.forecast
    if len(points) < 2:
        return None
    sizes = [one.world_size for one in points] + [one.world_size for one in ahead]
    ideal = [one.ideal for one in points] + [one.ideal for one in ahead]
    drawing = figure(colors, height=380, x_title="ranks", y_title="throughput / smallest run")
    drawing.add_scatter(
        name="ideal", x=sizes, y=ideal, mode="lines",
        line={"color": colors.muted, "dash": "dot"}, hovertemplate="ideal %{y:.3g}x<extra></extra>",
    )  # fmt: skip
    drawing.add_scatter(
        name="measured",
        x=[one.world_size for one in points],
        y=[one.throughput_ratio for one in points],
        mode="lines+markers",
        line={"color": colors.ink},
        marker={"size": 9},
        customdata=[
            [label(one.run), format_factor(one.throughput_ratio), format_share(one.efficiency)]
            for one in points
        ],
        hovertemplate="%{x} ranks: %{customdata[1]}, %{customdata[2]} of ideal<br>%{customdata[0]}"
        "<extra></extra>",
    )
    if ahead:
        _add_forecast(drawing, result, colors)
    drawing.update_xaxes(type="log", tickvals=sizes, ticktext=[f"{size:,}" for size in sizes])
    drawing.update_yaxes(type="log", tickvals=ideal, ticktext=[format_factor(one) for one in ideal])
    return drawing


def _add_forecast(drawing: go.Figure, result: Scaling, colors: Palette) -> None:
    ratios = [one.throughput_ratio for one in result.forecast]
    drawing.add_scatter(
        name="forecast",
        x=[one.world_size for one in result.forecast],
        y=[one.expected for one in ratios],
        mode="markers",
        marker={"symbol": "circle-open", "size": 10, "color": colors.ink},
        error_y={
            "type": "data",
            "symmetric": False,
            "array": [0 if one.high is None else one.high - one.expected for one in ratios],
            "arrayminus": [0 if one.low is None else one.expected - one.low for one in ratios],
            "color": colors.ink,
            "thickness": 1.5,
        },
        customdata=[format_factor(one.expected) for one in ratios],
        hovertemplate="%{x} ranks: forecast %{customdata}<extra></extra>",
    )


def lost_parts(result: Scaling, colors: Palette) -> go.Figure | None:
    """The time each step lost against the ideal step, cut into parts; shorter parts lie below zero."""
    shown = [(one, one.lost) for one in result.points[1:] if one.lost is not None]
    if not shown:
        return None
    drawing = figure(colors, height=340, x_title="ranks", y_title="lost per step, ms")
    drawing.update_layout(barmode="relative", showlegend=True)  # one colour alone says nothing
    drawing.update_xaxes(type="category")
    for part, word in PART_WORDS.items():
        lengths = [lost.part_ns(part) for _, lost in shown]
        if any(abs(ns) >= SMALLEST_SHARE * one.step_ns for ns, (one, _) in zip(lengths, shown, strict=True)):
            drawing.add_bar(
                name=word,
                x=[f"{one.world_size:,}" for one, _ in shown],
                y=[ns / 1e6 for ns in lengths],
                marker={
                    "color": REPLICA_SYNC if part == "replica_sync" else colors.part(part),
                    "line": {"width": 0},
                },
                customdata=[
                    [format_ns(ns), format_share(ns / one.step_ns)]
                    for ns, (one, _) in zip(lengths, shown, strict=True)
                ],
                hovertemplate=f"%{{x}} ranks, {word}: %{{customdata[0]}}, %{{customdata[1]}} of the "
                "step<extra></extra>",
            )
    return drawing
