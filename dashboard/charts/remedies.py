"""What each remedy would make of the step, alone: gains overlap, so none is drawn on top of another."""

from __future__ import annotations

from statistics import median

import plotly.graph_objects as go

from traceinsight.base.units import format_factor, format_ns
from traceinsight.diagnosis import Diagnosis, Finding, Gain

from ..text import label
from ..theme import Palette, figure


def in_order(diagnosis: Diagnosis) -> list[Finding]:
    """Findings as the roadmap orders their rules; those it does not name come last."""
    order: dict[str, int] = {}
    for place, entry in enumerate(diagnosis.roadmap):
        order.setdefault(entry.rule, place)
    return sorted(diagnosis.findings, key=lambda finding: order.get(finding.rule, len(order)))


def step_ns(diagnosis: Diagnosis) -> float | None:
    """Today's step: median window over ranks and steps."""
    windows = [row.window_ns for row in diagnosis.partition]
    return median(windows) if windows else None


def step_after_each(diagnosis: Diagnosis, colors: Palette) -> go.Figure | None:
    """Bars: the step now, and what each finding's remedy would leave of it, with the interval of the gain."""
    now = step_ns(diagnosis)
    gains = [(one, one.gain) for one in in_order(diagnosis) if one.gain is not None]
    if not now or not gains:
        return None
    left = [max(now - gain.step_ns.expected, 0) for _, gain in gains]
    names = [
        f"step now<br>{format_ns(now)}",
        *(
            f"{number}. {label(one.rule, 24)}<br>{format_ns(after)}, {_speedup(gain)}"
            for number, (after, (one, gain)) in enumerate(zip(left, gains, strict=True), start=1)
        ),
    ]
    drawing = figure(colors, height=70 + 58 * len(names), x_title="step time, ms")
    drawing.add_bar(
        orientation="h",
        y=names,
        x=[value / 1e6 for value in (now, *left)],
        marker_color=[colors.muted, *[colors.line] * len(gains)],
        error_x={
            "type": "data",
            "symmetric": False,
            # A larger gain leaves a shorter step: the high end of the gain is the low end of the bar.
            "array": [0, *((gain.step_ns.expected - gain.step_ns.low) / 1e6 for _, gain in gains)],
            "arrayminus": [0, *((gain.step_ns.high - gain.step_ns.expected) / 1e6 for _, gain in gains)],
            "color": colors.ink,
            "thickness": 1.5,
        },
        hovertemplate="%{y}<extra></extra>",
    )
    drawing.update_yaxes(autorange="reversed")
    return drawing


def _speedup(gain: Gain) -> str:
    factor = format_factor(gain.speedup.expected)
    return f"{factor} at best" if gain.kind == "ceiling" else f"{factor} (replayed)"
