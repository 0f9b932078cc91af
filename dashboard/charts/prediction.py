"""What a replay predicts: the step after each edit, on top of the edits before it."""

from __future__ import annotations

import plotly.graph_objects as go

from traceinsight.base.units import format_ns
from traceinsight.diagnosis.prediction import WhatIf

from ..text import label
from ..theme import Palette, figure


def step_after_edits(answer: WhatIf, colors: Palette) -> go.Figure | None:
    """Bars with intervals; edits that do not apply are left out."""
    applied = [(edit, edit.step_ns) for edit in answer.edits if edit.step_ns is not None]
    if answer.step_ns is None or not applied:
        return None
    names = [
        f"step now<br>{format_ns(answer.step_ns)}",
        *(
            f"{number}. {label(edit.edit, 26)}<br>{format_ns(time.expected)}"
            for number, (edit, time) in enumerate(applied, start=1)
        ),
    ]
    values = [answer.step_ns, *(time.expected for _, time in applied)]
    drawing = figure(colors, height=80 + 58 * len(names), x_title="step time, ms")
    drawing.add_bar(
        orientation="h",
        y=names,
        x=[value / 1e6 for value in values],
        marker_color=[colors.muted, *[colors.line] * len(applied)],
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [0, *((time.high - time.expected) / 1e6 for _, time in applied)],
            "arrayminus": [0, *((time.expected - time.low) / 1e6 for _, time in applied)],
            "color": colors.ink,
            "thickness": 1.5,
        },
        hovertemplate="%{y}<extra></extra>",
    )
    drawing.update_yaxes(autorange="reversed")
    return drawing
