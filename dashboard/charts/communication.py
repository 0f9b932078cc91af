"""Communication: which kinds cost step time, and how fast they move."""

from __future__ import annotations

import plotly.graph_objects as go

from traceinsight.base.units import format_bytes, format_gbps, format_ns
from traceinsight.diagnosis import CommunicationRow, Diagnosis

from ..text import label
from ..theme import Palette, figure

MOST_KINDS = 12
_PARTS = {
    "transfer": "exposed_transfer_ns",
    "wait": "exposed_wait_ns",
    "unsplit": "exposed_unsplit_ns",
}


def by_exposed_time(diagnosis: Diagnosis) -> list[CommunicationRow]:
    """Kinds in the order of what they cost."""
    return sorted(diagnosis.communication, key=lambda row: row.exposed_ns, reverse=True)


def kind(row: CommunicationRow) -> str:
    """What to call a kind: its annotation, or the operation and the phase that launched it."""
    return row.label or f"{row.op} in {row.phase}"


def exposed_bars(diagnosis: Diagnosis, colors: Palette) -> go.Figure | None:
    """Exposed time per kind, split; the costliest on top."""
    rows = [row for row in by_exposed_time(diagnosis) if row.exposed_ns][:MOST_KINDS]
    if not rows:
        return None
    # Two kinds may have one name and differ in phase only; equal names would be drawn as one bar.
    names = [f"{number}. {label(kind(row), 26)}" for number, row in enumerate(rows, start=1)]
    drawing = figure(colors, height=110 + 36 * len(rows), x_title="exposed ms per step")
    drawing.update_layout(barmode="stack")
    drawing.update_yaxes(autorange="reversed")
    for part, field in _PARTS.items():
        values = [getattr(row, field) for row in rows]
        if any(values):
            drawing.add_bar(
                name=part,
                orientation="h",
                y=names,
                x=[value / 1e6 for value in values],
                marker_color=colors.part(part),
                customdata=[
                    [format_ns(value), label(f"{row.op} in {row.phase}")]
                    for value, row in zip(values, rows, strict=True)
                ],
                hovertemplate=f"%{{y}} (%{{customdata[1]}})<br>{part} %{{customdata[0]}}<extra></extra>",
            )
    return drawing


def size_and_bandwidth(diagnosis: Diagnosis, colors: Palette) -> go.Figure | None:
    """Every collective whose size and speed are known: small ones are slow for reasons of their own."""
    known = [one for one in diagnosis.collectives if one.bytes and one.bus_gbps]
    if not known:
        return None
    drawing = figure(colors, height=340, x_title="payload of a rank, bytes", y_title="bus bandwidth, GB/s")
    symbols = ("circle", "diamond", "square", "cross", "triangle-up", "x")
    for number, operation in enumerate(sorted({one.op for one in known})):
        some = [one for one in known if one.op == operation]
        drawing.add_scatter(
            name=label(operation, 24),
            mode="markers",
            x=[one.bytes for one in some],
            y=[one.bus_gbps for one in some],
            marker={"color": colors.part("transfer"), "symbol": symbols[number % len(symbols)], "size": 9,
                    "line": {"color": colors.ink, "width": 0.5}},
            customdata=[
                [label(one.label or one.op), one.step, format_bytes(one.bytes), format_gbps(one.bus_gbps)]
                for one in some
            ],
            hovertemplate="%{customdata[0]}, step %{customdata[1]}<br>"
            "%{customdata[2]} at %{customdata[3]}<extra></extra>",
        )  # fmt: skip
    drawing.update_layout(showlegend=True)
    drawing.update_xaxes(type="log", exponentformat="SI", dtick=1)
    drawing.update_yaxes(type="log", dtick=1)
    return drawing
