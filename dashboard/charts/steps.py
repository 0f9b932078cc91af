"""Ranks against steps: who waits, who comes last, how long steps take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import plotly.graph_objects as go

from traceinsight.base.units import format_ns, format_share
from traceinsight.diagnosis import Diagnosis

from ..theme import PARTS, Palette, figure

Cells = Mapping[tuple[int, int], float]


@dataclass(frozen=True, slots=True)
class Quantity:
    """What a heat map shows. ``unit`` is "ms" or "%"; ``color`` is where its scale ends."""

    title: str
    unit: str
    color: str | None
    meaning: str


QUANTITIES = {
    "wait": Quantity(
        "Waiting for a late peer", "ms", PARTS["wait"],
        "exposed communication before the last member arrived: strong cells are victims, a faint row among "
        "strong ones is who they wait for",
    ),
    "last": Quantity(
        "Arrived last", "%", None,
        "share of the step's synchronising collectives, found on all their members, in which the rank came "
        "last",
    ),
    "step": Quantity("Step window", "ms", None, "length of the step window on the device"),
}  # fmt: skip


def cells(diagnosis: Diagnosis, quantity: str) -> Cells:
    """(rank, step) -> nanoseconds, or a share for "last"."""
    if quantity == "wait":
        return {(row.rank, row.step): row.exposed_comm_wait_ns for row in diagnosis.partition}
    if quantity == "step":
        return {(row.rank, row.step): row.window_ns for row in diagnosis.partition}
    return _last_arrivals(diagnosis)


def heat_map(diagnosis: Diagnosis, quantity: str, colors: Palette) -> go.Figure | None:
    """One cell per rank and step; a cell without data stays empty rather than zero."""
    found = cells(diagnosis, quantity)
    if not found:
        return None
    what = QUANTITIES[quantity]
    ranks = sorted({rank for rank, _ in found})
    steps = sorted({step for _, step in found})
    scale, form = (1e-6, format_ns) if what.unit == "ms" else (100.0, format_share)
    drawing = figure(colors, height=min(130 + 26 * len(ranks), 720), x_title="step", y_title="rank")
    drawing.add_heatmap(
        x=[str(step) for step in steps],
        y=[str(rank) for rank in ranks],
        z=[[_scaled(found.get((rank, step)), scale) for step in steps] for rank in ranks],
        customdata=[[form(found.get((rank, step))) for step in steps] for rank in ranks],
        colorscale=[[0, colors.panel], [1, what.color or colors.muted]],
        zmin=0,
        zmax=max(found.values()) * scale or 1,
        xgap=2,
        ygap=2 if len(ranks) <= 64 else 0,
        hoverongaps=False,
        colorbar={"title": {"text": what.unit}, "thickness": 12},
        hovertemplate="rank %{y}, step %{x}: %{customdata}<extra></extra>",
    )
    drawing.update_xaxes(type="category", showgrid=False, nticks=24)
    drawing.update_yaxes(type="category", showgrid=False, autorange="reversed", nticks=32)
    return drawing


def step_times(diagnosis: Diagnosis, colors: Palette) -> go.Figure | None:
    """Every step as a dot, by rank, with the box of its quartiles."""
    rows = [row for row in diagnosis.partition if row.window_ns]
    if not rows:
        return None
    ranks = sorted({row.rank for row in rows})
    drawing = figure(colors, height=340, x_title="rank", y_title="step window, ms")
    for rank in ranks:
        of_rank = [row for row in rows if row.rank == rank]
        drawing.add_box(
            name=str(rank),
            x=[str(rank)] * len(of_rank),
            y=[row.window_ns / 1e6 for row in of_rank],
            customdata=[[row.step, format_ns(row.window_ns)] for row in of_rank],
            boxpoints="all" if len(rows) <= 2000 else "outliers",
            pointpos=0,
            jitter=0.4,
            line={"color": colors.muted, "width": 1},
            marker={"color": colors.ink, "size": 5},
            hovertemplate="rank %{x}, step %{customdata[0]}: %{customdata[1]}<extra></extra>",
            showlegend=False,
        )
    drawing.update_xaxes(type="category", nticks=32)
    drawing.update_yaxes(rangemode="tozero")
    return drawing


def _last_arrivals(diagnosis: Diagnosis) -> Cells:
    """One member alone is not last, and where a member is missing nobody knows who is."""
    counted = [
        one
        for one in diagnosis.collectives
        if one.synchronising and one.last_rank is not None and not one.unmatched_ranks and len(one.ranks) > 1
    ]
    met: dict[tuple[int, int], int] = {}
    last: dict[tuple[int, int], int] = {}
    for one in counted:
        for rank in one.ranks:
            met[rank, one.step] = met.get((rank, one.step), 0) + 1
            last[rank, one.step] = last.get((rank, one.step), 0) + (rank == one.last_rank)
    return {place: last[place] / count for place, count in met.items()}


def _scaled(value: float | None, scale: float) -> float | None:
    return None if value is None else value * scale
