"""Achieved bandwidth against what the datasheet of the slowest link promises."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import Any

import plotly.graph_objects as go

from traceinsight.base.units import format_gbps, format_ranks, format_share
from traceinsight.diagnosis import Collective, Diagnosis, GroupLink

from ..text import label, name
from ..theme import Palette, figure


def datasheet_rows(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """One row per kind and link; only steady steps, and only where both bandwidths are known."""
    links = {one.group: one for one in diagnosis.links}
    steady = set(diagnosis.run.steps)
    kinds: dict[tuple[str, str, str, float], list[Collective]] = defaultdict(list)
    for one in diagnosis.collectives:
        link = links.get(one.group)
        limit = None if link is None else limit_gbps(link, one.op)
        if link is not None and limit and one.bus_gbps is not None and one.step in steady:
            kinds[one.label or one.op, one.phase, link.link or "", limit].append(one)
    rows = [
        {
            "kind": name(kind),
            "phase": name(phase),
            "link": name(link),
            "bus": (bus := median(one.bus_gbps or 0 for one in some)),
            "limit": limit,
            "share": 100 * bus / limit,
            "payload": median((one.bytes or 0) / 1e6 for one in some),
        }
        for (kind, phase, link, limit), some in kinds.items()
    ]
    return sorted(rows, key=lambda row: -row["payload"])


def limit_gbps(link: GroupLink, operation: str) -> float | None:
    """The highest bus bandwidth that a link allows this operation."""
    return link.all_to_all_gbps if operation == "all_to_all" else link.ring_gbps


def not_compared(diagnosis: Diagnosis) -> list[str]:
    """Why the links of some groups are not known, one sentence per reason."""
    reasons: dict[str, list[GroupLink]] = defaultdict(list)
    for one in diagnosis.links:
        if one.reason is not None:
            reasons[one.reason].append(one)
    help_for = {"node was": "Put run.json beside the traces (traceinsight.capture writes it).",
                "network": "Name it as hardware.network in run.json."}  # fmt: skip
    return [
        f"Group of ranks {format_ranks(groups[0].ranks, max_parts=8)}"
        f"{f' and {len(groups) - 1} more' if len(groups) > 1 else ''}: {reason}. "
        + next((text for part, text in help_for.items() if part in reason), "")
        for reason, groups in reasons.items()
    ]


def against_datasheet(diagnosis: Diagnosis, colors: Palette) -> go.Figure | None:
    """Bars in percent of the datasheet, the largest payload on top."""
    rows = datasheet_rows(diagnosis)[:12]
    if not rows:
        return None
    drawing = figure(colors, height=90 + 46 * len(rows), x_title="% of the link's datasheet")
    drawing.add_bar(
        orientation="h",
        y=[
            f"{number}. {label(row['kind'], 24)}<br>{format_gbps(row['bus'])} of {format_gbps(row['limit'])}"
            for number, row in enumerate(rows, start=1)
        ],
        x=[row["share"] for row in rows],
        marker_color=colors.part("transfer"),
        customdata=[[format_share(row["share"] / 100), label(row["link"], 60)] for row in rows],
        hovertemplate="%{y}, %{customdata[0]}<br>%{customdata[1]}<extra></extra>",
    )
    drawing.update_xaxes(range=[0, max(100.0, *(row["share"] for row in rows))], ticksuffix="%")
    drawing.update_yaxes(autorange="reversed")
    return drawing
