"""Where the time of each rank went: of the step window, of idle time, of the forward span."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import plotly.graph_objects as go

from traceinsight.base.units import format_ns, format_share
from traceinsight.diagnosis import CAUSES, Diagnosis, ForwardShare, Partition

from ..theme import MEANINGS, Palette, figure

PARTS = {
    "compute": "compute_ns",
    "transfer": "exposed_comm_transfer_ns",
    "wait": "exposed_comm_wait_ns",
    "unsplit": "exposed_comm_unsplit_ns",
    "copy": "exposed_copy_ns",
    "idle": "idle_ns",
}
_FORWARD_PARTS = {
    "transfer": "exposed_transfer_ns",
    "wait": "exposed_wait_ns",
    "unsplit": "exposed_unsplit_ns",
}
CAUSE_WORDS = {
    "input": "input: the next batch is fetched",
    "host_sync": "host sync: the host waits for the device",
    "host": "host work: operators and launches",
    "allocator": "allocator: memory is allocated or freed",
    "launch_latency": "launch: between launch and start",
    "dependency": "dependency: waits for other streams or threads",
    "unattributed": "unknown: the trace does not say",
}


def partition_bars(diagnosis: Diagnosis, colors: Palette) -> go.Figure | None:
    """Stacked bars of the step window per rank, all analysed steps together, so that they end at 100%."""
    return _stacked(diagnosis.partition, PARTS, "window_ns", colors, "% of the step window")


def forward_bars(diagnosis: Diagnosis, colors: Palette) -> go.Figure | None:
    """Exposed communication launched by forward, as share of each rank's forward span."""
    return _stacked(diagnosis.forward, _FORWARD_PARTS, "span_ns", colors, "% of the forward span")


def idle_causes(rows: Sequence[Partition], colors: Palette) -> go.Figure | None:
    """Why the device was idle, per step, mean over the rows given; one colour, because all of it is idle."""
    if not rows or not any(row.idle_ns for row in rows):
        return None
    means = {cause: sum(row.idle_by_cause_ns.get(cause, 0) for row in rows) / len(rows) for cause in CAUSES}
    shown = sorted((cause for cause in CAUSES if means[cause] > 0), key=means.__getitem__)
    drawing = figure(colors, height=90 + 34 * len(shown), x_title="ms per step")
    drawing.add_bar(
        orientation="h",
        y=[CAUSE_WORDS[cause].partition(":")[0] for cause in shown],
        x=[means[cause] / 1e6 for cause in shown],
        marker_color=colors.part("idle"),
        text=[format_ns(means[cause]) for cause in shown],
        textposition="outside",
        cliponaxis=False,
        customdata=[CAUSE_WORDS[cause] for cause in shown],
        hovertemplate="%{customdata}<br>%{text} per step<extra></extra>",
    )
    drawing.update_xaxes(range=[0, 1.15 * max(means.values()) / 1e6])  # room for the text beside the longest
    return drawing


def _stacked(
    rows: Sequence[Partition] | Sequence[ForwardShare],
    parts: dict[str, str],
    whole: str,
    colors: Palette,
    y_title: str,
) -> go.Figure | None:
    totals: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        for name in (whole, *parts.values()):
            totals[row.rank][name] += getattr(row, name)
    ranks = sorted(rank for rank, of_rank in totals.items() if of_rank[whole] > 0)
    if not ranks:
        return None
    drawing = figure(colors, height=340, x_title="rank", y_title=y_title)
    drawing.update_layout(barmode="stack", bargap=0.25 if len(ranks) <= 64 else 0, showlegend=True)
    drawing.update_xaxes(type="category", nticks=32)
    drawing.update_yaxes(range=[0, 100], ticksuffix="%")
    for part, name in parts.items():
        shares = [totals[rank][name] / totals[rank][whole] for rank in ranks]
        if any(shares):
            drawing.add_bar(
                name=part,
                x=[str(rank) for rank in ranks],
                y=[100 * share for share in shares],
                marker={"color": colors.part(part), "line": {"width": 0}},
                customdata=[
                    [format_share(share), format_ns(totals[rank][name])]
                    for rank, share in zip(ranks, shares, strict=True)
                ],
                hovertemplate=f"rank %{{x}}: {part} %{{customdata[0]}} (%{{customdata[1]}} in all)<br>"
                f"{MEANINGS[part]}<extra></extra>",
            )
    return drawing if drawing.data else None
