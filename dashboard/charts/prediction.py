"""What a replay predicts: the step after each edit, on top of the edits before it."""

from __future__ import annotations

from collections.abc import Sequence

import plotly.graph_objects as go

from traceinsight.base.units import format_ns
from traceinsight.diagnosis.prediction import RankStepParts, WhatIf

from ..text import label
from ..theme import REPLICA_SYNC, Palette, figure

_PARTS = ("compute", "transfer", "wait", "copy", "replica_sync", "idle")


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


def parts_after_edits(answer: WhatIf, colors: Palette) -> go.Figure | None:
    """The step of each rank in parts: now (pale, at the left) and after all changes that apply."""
    if not answer.parts_after or len(answer.parts_before) != len(answer.parts_after):
        return None
    ranks = [one.rank for one in answer.parts_after]
    drawing = figure(colors, height=360, x_title="rank", y_title="time per step, ms")
    drawing.update_layout(barmode="overlay")
    _add_parts(drawing, answer.parts_after, colors, now=False)  # first: the legend is not to be pale
    _add_parts(drawing, answer.parts_before, colors, now=True)
    shown = range(0, len(ranks), 1 + len(ranks) // 32)
    drawing.update_xaxes(tickvals=list(shown), ticktext=[str(ranks[at]) for at in shown], showgrid=False)
    return drawing


def _add_parts(drawing: go.Figure, rows: Sequence[RankStepParts], colors: Palette, *, now: bool) -> None:
    below = [0] * len(rows)
    for part in _PARTS:
        lengths: list[int] = [getattr(one, f"{part}_ns") for one in rows]
        word = part.replace("_", " ")
        if any(lengths):
            drawing.add_bar(
                name=word,
                legendgroup=word,
                showlegend=not any(one.name == word for one in drawing.data),
                x=list(range(len(rows))),
                y=[ns / 1e6 for ns in lengths],
                base=[ns / 1e6 for ns in below],
                width=0.38,
                offset=-0.4 if now else 0.02,
                opacity=0.45 if now else 1.0,
                marker={
                    "color": REPLICA_SYNC if part == "replica_sync" else colors.part(part),
                    "line": {"width": 0},
                },
                hovertext=[
                    f"rank {one.rank}, {'now' if now else 'after'}: {word} {format_ns(ns)}"
                    for one, ns in zip(rows, lengths, strict=True)
                ],
                hovertemplate="%{hovertext}<extra></extra>",
            )
        below = [sum(pair) for pair in zip(below, lengths, strict=True)]
