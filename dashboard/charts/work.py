"""Where the work is: kernel families and phases of the step."""

from __future__ import annotations

from collections import defaultdict
from statistics import median

import plotly.graph_objects as go

from traceinsight.base.units import format_count, format_ns, format_share
from traceinsight.diagnosis import Diagnosis, PhaseRow

from ..text import label
from ..theme import Palette, figure

_SPECIAL = {"communication": "transfer", "copy": "copy"}
"""Families that are no compute, and the part whose colour they share."""


def kernel_families(diagnosis: Diagnosis, colors: Palette) -> go.Figure | None:
    """Device time per family, largest on top."""
    rows = sorted(diagnosis.kernels, key=lambda row: row.busy_ns, reverse=True)
    if not rows:
        return None
    drawing = figure(colors, height=80 + 34 * len(rows), x_title="device ms per step")
    drawing.add_bar(
        orientation="h",
        y=[label(row.family, 24) for row in rows],
        x=[row.busy_ns / 1e6 for row in rows],
        marker_color=[colors.part(_SPECIAL.get(row.family, "compute")) for row in rows],
        customdata=[
            [
                format_ns(row.busy_ns), format_share(row.share), format_count(row.count_per_step),
                label(row.top_kernels[0], 60) if row.top_kernels else "",
            ]
            for row in rows
        ],
        hovertemplate="%{y}: %{customdata[0]} per step, %{customdata[1]} of the sum of all families<br>"
        "%{customdata[2]} kernels per step; largest: %{customdata[3]}<extra></extra>",
    )  # fmt: skip
    drawing.update_yaxes(autorange="reversed")
    return drawing


def phase_medians(diagnosis: Diagnosis) -> dict[str, dict[str, float]]:
    """Per phase, in the order they come in: median over ranks and steps of each time, ns."""
    by_phase: dict[str, list[PhaseRow]] = defaultdict(list)
    for row in diagnosis.phases:
        by_phase[row.phase].append(row)
    names = ("host_ns", "compute_ns", "comm_ns", "exposed_comm_ns", "copy_ns")
    return {
        phase: {name: median(getattr(row, name) for row in rows) for name in names}
        for phase, rows in by_phase.items()
    }


def phases(diagnosis: Diagnosis, colors: Palette) -> go.Figure | None:
    """Host time beside device work, by phase. They overlap, so nothing is stacked."""
    medians = phase_medians(diagnosis)
    if set(medians) <= {"other"}:  # "other" alone says nothing
        return None
    drawing = figure(colors, height=360, y_title="ms per step, median")
    drawing.update_layout(barmode="group")
    series = {
        "host thread": ("host_ns", colors.muted),
        "compute": ("compute_ns", colors.part("compute")),
        "communication": ("comm_ns", colors.part("transfer")),
        "copy": ("copy_ns", colors.part("copy")),
    }
    for title, (name, color) in series.items():
        values = [of_phase[name] for of_phase in medians.values()]
        if any(values):
            drawing.add_bar(
                name=title,
                x=[label(phase.replace("_", " "), 24) for phase in medians],
                y=[value / 1e6 for value in values],
                marker_color=color,
                text=[format_ns(value) for value in values],
                textposition="none",
                hovertemplate=f"%{{x}}: {title} %{{text}}<extra></extra>",
            )
    return drawing
