"""Two runs: where the step changed, both steps in parts, and the exposed time of every kind of collective."""

from __future__ import annotations

import plotly.graph_objects as go

from traceinsight.base.units import format_ns, format_share
from traceinsight.diagnosis.comparison import Change, CommunicationChange, Comparison

from ..text import label
from ..theme import Palette, figure

_KINDS_SHOWN = 10


def change_by_part(comparison: Comparison, colors: Palette) -> go.Figure | None:
    """Change of the step and of its parts with their bounds; right of zero is longer."""
    rows = [("step", comparison.step_time)]
    rows += [
        (row.part, row.change) for row in comparison.partition if row.change.before_ns or row.change.after_ns
    ]
    known = [(part, change, change.change_ns) for part, change in rows if change.change_ns is not None]
    if not known:
        return None
    drawing = figure(colors, height=70 + 46 * len(known), x_title="change per step, ms")
    drawing.add_bar(
        orientation="h",
        y=[f"{part}<br>{_what(change)}" for part, change, _ in known],
        x=[change_ns / 1e6 for *_, change_ns in known],
        marker_color=[colors.muted if part == "step" else colors.part(part) for part, *_ in known],
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [_above(change, change_ns) for _, change, change_ns in known],
            "arrayminus": [_below(change, change_ns) for _, change, change_ns in known],
            "color": colors.ink,
            "thickness": 1.5,
        },
        hovertemplate="%{y}<extra></extra>",
    )
    drawing.update_yaxes(autorange="reversed")
    return drawing


def _what(change: Change) -> str:
    if not change.judged:
        return "not judged"
    return format_share(change.share) if change.significant else "no change"


def _above(change: Change, change_ns: int) -> float:
    return (change.high_ns - change_ns) / 1e6 if change.high_ns is not None else 0.0


def _below(change: Change, change_ns: int) -> float:
    return (change_ns - change.low_ns) / 1e6 if change.low_ns is not None else 0.0


def parts_side_by_side(comparison: Comparison, colors: Palette) -> go.Figure | None:
    """Both steps as bars of their parts, mean over ranks, median over steps."""
    parts = [
        (row.part, row.change.before_ns, row.change.after_ns)
        for row in comparison.partition
        if row.change.before_ns or row.change.after_ns
    ]
    if not parts:
        return None
    drawing = figure(colors, height=190, x_title="time per step, ms")
    for part, before_ns, after_ns in parts:
        times = (before_ns, after_ns)
        drawing.add_bar(
            orientation="h",
            name=part,
            y=["before", "after"],
            x=[None if ns is None else ns / 1e6 for ns in times],
            marker_color=colors.part(part),
            customdata=[format_ns(ns) for ns in times],
            hovertemplate=f"{part}: %{{customdata}}<extra></extra>",
        )
    drawing.update_layout(barmode="stack")
    drawing.update_yaxes(autorange="reversed")
    return drawing


def exposed_by_kind(comparison: Comparison, colors: Palette) -> go.Figure | None:
    """Exposed time of every kind before and after; a kind that one run lacks has one bar."""
    rows = comparison.communication[:_KINDS_SHOWN]
    if not rows:
        return None
    # Two kinds may have one name once it is cut; equal names would be drawn as one bar.
    names = [f"{number}. {_kind(row)}<br>{_what(row.exposed)}" for number, row in enumerate(rows, start=1)]
    drawing = figure(colors, height=80 + 56 * len(rows), x_title="exposed ms per step")
    for title, color, times in (
        ("before", colors.muted, [row.exposed.before_ns for row in rows]),
        ("after", colors.ink, [row.exposed.after_ns for row in rows]),
    ):
        drawing.add_bar(
            orientation="h",
            name=title,
            y=names,
            x=[None if ns is None else ns / 1e6 for ns in times],
            marker_color=color,
            customdata=[format_ns(ns) for ns in times],
            hovertemplate="%{y}: %{customdata}<extra></extra>",
        )
    drawing.update_yaxes(autorange="reversed")
    return drawing


def _kind(row: CommunicationChange) -> str:
    one = row.before or row.after
    assert one is not None
    return label(one.label or f"{one.op} in {one.phase}", 30)
