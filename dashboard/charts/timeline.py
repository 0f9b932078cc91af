"""A window of the timeline: rows of ranks on one clock, steps, findings and the critical path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import plotly.graph_objects as go

from traceinsight.api import CATEGORIES, Pieces, Timeline, View
from traceinsight.base.units import format_ns
from traceinsight.diagnosis import Diagnosis

from ..text import label
from ..theme import MEANINGS, Palette, figure

_ROW_PX, _RANK_GAP, _LONGEST_TEXT = 21, 0.4, 40
_TRAIL_BELOW = 0.36  # of a row: along the lower edge of its pieces, clear of their texts
_SHORT = {"communication": "comm."}
_LEGEND = dict.fromkeys(("launch", "delay", "before"), "delay, launch")
_PATH_WORDS = {
    "host": "the host's own time", "launch": "from the launch call to the device",
    "delay": "delay that nothing recorded explains",
    "before": "under way when the analysed steps began",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Line:
    """A row of the chart, so many rows from the top. ``late``: a finding is about its rank."""

    title: str
    at: float
    late: bool = False


def timeline_chart(timeline: Timeline, view: View, diagnosis: Diagnosis, colors: Palette) -> go.Figure | None:
    """Rows from the top: findings, critical path, then host, compute, communication and copies by rank."""
    if not view.rows:
        return None
    heads = ["findings"] if diagnosis.findings else []
    heads += ["critical path"] if view.critical_path is not None else []
    lines = [_Line(title, number) for number, title in enumerate(heads)]
    lines += _rank_lines(timeline, view, diagnosis, len(heads))
    rows = list(zip(lines[len(heads) :], view.rows, strict=True))
    drawing = figure(colors, height=120 + round(_ROW_PX * lines[-1].at))
    if diagnosis.findings:
        _add_findings(drawing, timeline, view, diagnosis, colors)
    drawn = [(line.at, pieces) for line, pieces in rows]
    if view.critical_path is not None:
        drawn.append((len(heads) - 1, view.critical_path))
    _add_pieces(drawing, timeline, drawn, colors)
    if view.critical_path is not None:
        places = {(timeline.rows[one.row].rank, timeline.rows[one.row].title): line.at for line, one in rows}
        _add_trail(drawing, view.critical_path, places, colors)
    _add_steps(drawing, timeline, view, colors)
    _lay_out(drawing, lines, view)
    return drawing


def _rank_lines(timeline: Timeline, view: View, diagnosis: Diagnosis, first: float) -> list[_Line]:
    """One line per row, with a gap before each rank."""
    late = {rank for one in diagnosis.stragglers for rank in one.ranks}
    lines: list[_Line] = []
    at, before = first - 1.0, None
    for pieces in view.rows:
        row = timeline.rows[pieces.row]
        at += 1 if row.rank == before else 1 + _RANK_GAP
        mark = " (late)" if row.rank in late and row.rank != before else ""
        kind = _SHORT.get(row.title, row.title)
        lines.append(_Line(f"{row.rank}{mark} {kind}", at, row.rank in late))
        before = row.rank
    return lines


def csv_rows(timeline: Timeline, view: View) -> Iterator[dict[str, object]]:
    """What is drawn, one dictionary per piece; times in ms since the capture began."""
    drawn = [*view.rows, *([view.critical_path] if view.critical_path is not None else [])]
    for pieces in drawn:
        title = "critical path" if pieces.row < 0 else timeline.rows[pieces.row].title
        for at in range(len(pieces.start_ns)):
            yield {
                "rank": int(pieces.ranks[at]),
                "row": title,
                "start_ms": float(pieces.start_ns[at]) / 1e6,
                "end_ms": float(pieces.end_ns[at]) / 1e6,
                "busy_ms": float(pieces.busy_ns[at]) / 1e6,
                "kind": CATEGORIES[int(pieces.category[at])],
                "pieces": int(pieces.count[at]),
                "longest": timeline.names[int(pieces.name[at])],
            }


def _color(category: str, colors: Palette) -> str:
    if category in {"launch", "delay", "before"}:
        return colors.line
    return colors.idle if category == "host" else colors.part(category)


def _add_pieces(
    drawing: go.Figure, timeline: Timeline, rows: Sequence[tuple[float, Pieces]], colors: Palette
) -> None:
    """One trace per category, so that each colour has one entry in the legend."""
    for number, category in enumerate(CATEGORIES):
        places = [
            (line, pieces, at)
            for line, pieces in rows
            for at in (pieces.category == number).nonzero()[0].tolist()
        ]
        if not places:
            continue
        drawing.add_bar(
            name=_LEGEND.get(category, category),
            legendgroup=category,
            showlegend=not any(one.name == _LEGEND.get(category, category) for one in drawing.data),
            orientation="h",
            base=[float(pieces.start_ns[at]) / 1e6 for _, pieces, at in places],
            x=[float(pieces.end_ns[at] - pieces.start_ns[at]) / 1e6 for _, pieces, at in places],
            y=[line for line, _, _ in places],
            width=0.8,
            marker={"color": _color(category, colors), "line": {"width": 0}},
            text=[_inside(timeline, pieces, at) for _, pieces, at in places] if category == "host" else None,
            textposition="inside",
            insidetextanchor="start",
            textangle=0,
            insidetextfont={"color": colors.ink, "size": 10},
            customdata=[_hover(timeline, pieces, at, category) for _, pieces, at in places],
            hovertemplate="%{customdata}<extra></extra>",
        )


def _inside(timeline: Timeline, pieces: Pieces, at: int) -> str:
    return label(timeline.names[int(pieces.name[at])], _LONGEST_TEXT) if pieces.row >= 0 else ""


def _hover(timeline: Timeline, pieces: Pieces, at: int, category: str) -> str:
    name = label(timeline.names[int(pieces.name[at])], 60)
    length = format_ns(float(pieces.end_ns[at] - pieces.start_ns[at]))
    count = int(pieces.count[at])
    meaning = MEANINGS.get(category, _PATH_WORDS.get(category, ""))
    if pieces.row >= 0:
        meaning = {"host": "the main thread, by phase", "compute": "", "copy": ""}.get(category, meaning)
    what = (
        name
        if count == 1
        else f"{count:,} pieces, busy {format_ns(float(pieces.busy_ns[at]))}; longest: {name}"
    )
    return f"rank {int(pieces.ranks[at])}, {category}: {length}<br>{what}" + (
        f"<br>{meaning}" if meaning else ""
    )


def _add_trail(
    drawing: go.Figure, path: Pieces, places: Mapping[tuple[int, str], float], colors: Palette
) -> None:
    """The critical path as one line through the rows that it runs in; broken where a rank is not shown."""
    titles = {"compute": "compute", "transfer": "communication", "copy": "copy"}
    x: list[float] = []
    y: list[float | None] = []
    for at in range(len(path.start_ns)):
        title = titles.get(CATEGORIES[int(path.category[at])], "host")
        line = places.get((int(path.ranks[at]), title))
        line = None if line is None else line + _TRAIL_BELOW
        x += [float(path.start_ns[at]) / 1e6, float(path.end_ns[at]) / 1e6]
        y += [line, line]
    drawing.add_scatter(
        name="critical path",
        mode="lines",
        x=x,
        y=y,
        line={"color": colors.ink, "width": 2},
        hoverinfo="skip",
        connectgaps=False,
    )


def _add_findings(
    drawing: go.Figure, timeline: Timeline, view: View, diagnosis: Diagnosis, colors: Palette
) -> None:
    """The gravest finding of each analysed step's window; all of them on hover."""
    titles = "<br>".join(
        f"{number}. {label(one.title, 90)}" for number, one in enumerate(diagnosis.findings, 1)
    )
    first = diagnosis.findings[0]
    spans = [
        (max(span[0], view.start_ns), min(span[1], view.end_ns))
        for number in sorted({step for _, step, _, _ in timeline.steps})
        if (span := timeline.step_ns(number)) is not None
    ]
    spans = [(start, end) for start, end in spans if end > start]
    drawing.add_bar(
        name="findings", showlegend=False, orientation="h",
        base=[start / 1e6 for start, _ in spans], x=[(end - start) / 1e6 for start, end in spans],
        y=[0] * len(spans), width=0.8, text=[f"1. {label(first.title, 70)}"] * len(spans),
        textposition="inside", insidetextanchor="start", textangle=0,
        insidetextfont={"color": colors.paper, "size": 10},
        marker={"color": getattr(colors, first.severity), "line": {"color": colors.paper, "width": 2}},
        hovertemplate=f"{titles}<extra></extra>",
    )  # fmt: skip


def _add_steps(drawing: go.Figure, timeline: Timeline, view: View, colors: Palette) -> None:
    """A line where each step's first window begins."""
    for number in sorted({step for _, step, _, _ in timeline.steps}):
        start, _ = timeline.step_ns(number) or (0, 0)
        if view.start_ns <= start < view.end_ns:
            drawing.add_vline(
                x=start / 1e6, line={"color": colors.muted, "width": 1, "dash": "dot"},
                annotation={"text": f"step {number}", "font": {"color": colors.muted, "size": 11},
                            "yanchor": "bottom", "yref": "paper", "y": 1.0, "xanchor": "left"},
            )  # fmt: skip


def _lay_out(drawing: go.Figure, lines: Sequence[_Line], view: View) -> None:
    drawing.update_layout(
        barmode="overlay",
        bargap=0,
        dragmode="select",
        selectdirection="h",
        uniformtext={"minsize": 9, "mode": "hide"},
        legend={"y": 0, "yref": "container", "yanchor": "bottom"},
        margin={"l": 8, "r": 12, "t": 24, "b": 72},
        hoverdistance=4,
    )
    drawing.update_xaxes(
        range=[view.start_ns / 1e6, view.end_ns / 1e6],
        showgrid=False,
        fixedrange=False,
        ticksuffix=" ms",
        nticks=7,
    )
    drawing.update_yaxes(
        range=[lines[-1].at + 0.6, -0.6],
        tickvals=[line.at for line in lines],
        ticktext=[f"<b>{line.title}</b>" if line.late else line.title for line in lines],
        tickfont={"size": 11},
        showgrid=False,
        zeroline=False,
    )
