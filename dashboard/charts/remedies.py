"""What remedies would make of the step: one on top of the other as replayed, and each alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise

import plotly.graph_objects as go

from traceinsight.base.units import format_factor, format_ns
from traceinsight.diagnosis import (
    Diagnosis,
    Gain,
    Interval,
    NanosecondRange,
    in_roadmap_order,
    typical_step_ns,
)

from ..text import label
from ..theme import Palette, figure

_BATCH = re.compile(r"batch=(\d+(?:\.\d+)?)$")


@dataclass(frozen=True, slots=True)
class Change:
    """A replayed entry of the roadmap; ``now_ns`` is the step before all. Speedups are per example."""

    edit: str
    rule: str
    now_ns: float
    step_ns: NanosecondRange
    speedup: Interval
    in_all: Interval

    def equal_batch_ns(self, in_all: float) -> float:
        """Time for today's examples at that speedup."""
        return self.now_ns / max(in_all, 1e-9)


def step_after_each(diagnosis: Diagnosis, colors: Palette) -> go.Figure | None:
    """Bars: the step now, and what each finding's remedy would leave of it, with the interval of the gain."""
    now = typical_step_ns(diagnosis.partition)
    gains = [
        (one, one.gain)
        for one in in_roadmap_order(diagnosis.findings, diagnosis.roadmap)
        if one.gain is not None
    ]
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


def predicted(diagnosis: Diagnosis) -> list[Change]:
    """The roadmap's changes that were replayed, in order."""
    found: list[Change] = []
    growth = 1.0
    for entry in diagnosis.roadmap:
        if (
            entry.edit is None
            or entry.step_ns is None
            or entry.speedup is None
            or entry.cumulative_speedup is None
        ):
            continue
        growth *= _batch_growth(entry.edit)
        if not found:
            now = entry.step_ns.expected * entry.cumulative_speedup.expected / growth
        found.append(
            Change(entry.edit, entry.rule, now, entry.step_ns, entry.speedup, entry.cumulative_speedup)
        )
    return found


def _batch_growth(edit: str) -> float:
    """How many times a step's examples grow; speedups are per example, so a larger batch must be told."""
    found = _BATCH.match(edit)
    return float(found[1]) if found and float(found[1]) > 0 else 1.0


def waterfall(diagnosis: Diagnosis, colors: Palette) -> go.Figure | None:
    """The step now, what each change takes from it on top of those before it, and the step after all."""
    changes = predicted(diagnosis)
    if not changes:
        return None
    now = changes[0].now_ns
    afters = [now, *(one.equal_batch_ns(one.in_all.expected) for one in changes)]
    names = [f"step now<br>{format_ns(now)}"]
    names += [
        f"{number}. {label(one.edit, 26)}<br>{format_ns(one.step_ns.expected)}, "
        f"{format_factor(one.speedup.expected)}"
        for number, one in enumerate(changes, start=1)
    ]
    names.append(f"after all of them<br>{format_factor(changes[-1].in_all.expected)} as fast")
    drawing = figure(colors, height=80 + 58 * len(names), x_title="time for today's batch, ms")
    drawing.add_bar(
        orientation="h",
        y=names,
        base=[0.0, *(min(pair) / 1e6 for pair in pairwise(afters)), 0.0],
        x=[now / 1e6, *(abs(old - new) / 1e6 for old, new in pairwise(afters)), afters[-1] / 1e6],
        marker_color=[colors.muted, *[colors.good] * len(changes), colors.muted],
        hovertemplate="%{y}<extra></extra>",
        showlegend=False,
    )
    _add_intervals(drawing, names[1:-1], changes, colors)
    drawing.update_yaxes(autorange="reversed", type="category")
    drawing.update_xaxes(rangemode="tozero")
    return drawing


def _add_intervals(drawing: go.Figure, names: list[str], changes: list[Change], colors: Palette) -> None:
    expected = [one.equal_batch_ns(one.in_all.expected) for one in changes]
    slow = [one.equal_batch_ns(one.in_all.low) for one in changes]
    fast = [one.equal_batch_ns(one.in_all.high) for one in changes]
    drawing.add_scatter(
        mode="markers",
        y=names,
        x=[one / 1e6 for one in expected],
        marker={"color": colors.ink, "size": 5},
        error_x={
            "type": "data",
            "symmetric": False,
            "array": [(high - middle) / 1e6 for high, middle in zip(slow, expected, strict=True)],
            "arrayminus": [(middle - low) / 1e6 for low, middle in zip(fast, expected, strict=True)],
            "color": colors.ink,
            "thickness": 1.5,
        },
        customdata=[f"{format_ns(low)} to {format_ns(high)}" for low, high in zip(fast, slow, strict=True)],
        hovertemplate="%{y}<br>interval %{customdata}<extra></extra>",
        showlegend=False,
    )


def _speedup(gain: Gain) -> str:
    factor = format_factor(gain.speedup.expected)
    return f"{factor} at best" if gain.kind == "ceiling" else f"{factor} (replayed)"
