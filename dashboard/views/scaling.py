"""Scaling: runs of the folder at several world sizes."""

from __future__ import annotations

from typing import Any

import streamlit as st

from traceinsight.base.errors import TraceInsightError
from traceinsight.diagnosis.scaling import PARTS, Scaling
from traceinsight.report.scaling import build_scaling

from ..charts.scaling import PART_WORDS, SMALLEST_SHARE, lost_parts, throughput
from ..context import Context, show
from ..runs import UPLOAD
from ..text import block, headline, name, paragraph
from .parts import chart, number, table

_KEY = "sizes"
_MOST_AT_ONCE = 6
"""More runs are not chosen unasked: each may take a minute to read."""

_PROSE = ("What to know", "The runs")


def draw(context: Context) -> None:
    """Choose runs, see how throughput grows with their size."""
    names = context.runs.folders()
    if len(names) < 2:
        show(
            paragraph(
                "There is one run here. Start the dashboard with a folder that holds a folder of traces for "
                "each world size.",
                "muted",
            )
        )
        return
    try:
        chosen = _choose(context, names)
        if len(chosen) < 2:
            show(paragraph("Choose runs of the same job at two or more world sizes.", "muted"))
            return
        with st.spinner("Reading the runs"):
            result = context.runs.scaling(chosen)
    except TraceInsightError as error:
        show(paragraph(str(error), "critical"))
        return
    _answer(context, result)


def _choose(context: Context, names: list[str]) -> list[str]:
    """The runs to compare, kept in the link; one that the link names and is not on offer is refused."""
    asked = st.query_params.get_all(_KEY)
    for one in asked:
        if one not in names:
            context.runs.resolve(one)  # says why it is none of the choices
    below = [one for one in names if one not in {"", UPLOAD}]
    if _KEY not in st.session_state:
        wanted = [one for one in asked if one in names]
        st.session_state[_KEY] = wanted or (below if len(below) <= _MOST_AT_ONCE else [])
    chosen: list[str] = st.multiselect(
        "Runs, one per world size", names, key=_KEY, format_func=context.runs.title
    )
    st.query_params[_KEY] = chosen
    return chosen


def _answer(context: Context, result: Scaling) -> None:
    document = build_scaling(result)
    show(headline(document.verdict), paragraph(document.basis, "muted"))
    chart(
        "Throughput against ideal", throughput(result, context.colors), "Nothing was measured.",
        key="throughput",
        note="Relative to the smallest run; both axes are logarithmic, so ideal is a straight line. "
        + ("Hollow: forecast, with its interval." if result.forecast else _no_forecast(result)),
    )  # fmt: skip
    table(
        point_rows(result),
        step=number("step", "ms", meaning="median over ranks and analysed steps"),
        ideal=number("ideal step", "ms", meaning="the smallest run's, for the same examples per rank"),
        rate=number("examples/s", "", digits=0, meaning="of the whole job"),
        speedup=number("speedup", "", digits=2, meaning="throughput over that of the smallest run"),
        efficiency=number("efficiency", "%", digits=1, meaning="speedup / ideal = ideal step / step"),
    )
    chart(
        "Where the lost time goes", lost_parts(result, context.colors),
        "Not measured: no device activity inside a step was recorded.", key="lost",
        note="Step minus ideal step, each part minus what it is there; the parts sum to the loss. "
        "Below zero: shorter than there.",
    )  # fmt: skip
    table(lost_rows(result), **{word: number(word, "ms") for word in ("lost", *PART_WORDS.values())})
    if result.forecast:
        st.subheader("Forecast for larger sizes", anchor=False)
        table(
            forecast_rows(result),
            speedup=number("speedup", "", digits=2, meaning="throughput over that of the smallest run"),
            low=number("at least", "", digits=2),
            high=number("at most", "", digits=2),
            efficiency=number("efficiency", "%", digits=1, meaning="speedup / ideal"),
            step=number("step", "ms"),
        )
        found = next(one for one in document.sections if one.title.startswith("Forecast"))
        show(*(paragraph(getattr(one, "legend", ""), "muted") for one in found.blocks))
    for section in document.sections:
        if section.title.startswith(_PROSE):
            st.subheader(section.title, anchor=False)
            show(*(block(one) for one in section.blocks))


def _no_forecast(result: Scaling) -> str:
    return f"No forecast: {result.no_forecast}."


def point_rows(result: Scaling) -> list[dict[str, Any]]:
    """One row per run, the smallest first."""
    return [
        {
            "run": name(one.run),
            "ranks": one.world_size,
            "nodes": one.nodes,
            "step": one.step_ns / 1e6,
            "ideal": one.ideal_step_ns / 1e6,
            "rate": one.examples_per_s,
            "speedup": one.throughput_ratio,
            "efficiency": 100 * one.efficiency,
        }
        for one in result.points
    ]


def lost_rows(result: Scaling) -> list[dict[str, Any]]:
    """Milliseconds lost per step and part; parts that hardly change in any run are left out."""
    shown = [(one, one.lost) for one in result.points[1:]]
    used = [
        part
        for part in PARTS
        if any(lost and abs(lost.part_ns(part)) >= SMALLEST_SHARE * one.step_ns for one, lost in shown)
    ]
    return [
        {
            "ranks": one.world_size,
            "lost": one.lost_ns / 1e6,
            **{PART_WORDS[part]: None if lost is None else lost.part_ns(part) / 1e6 for part in used},
        }
        for one, lost in shown
    ]


def forecast_rows(result: Scaling) -> list[dict[str, Any]]:
    """One row per size that was not run."""
    return [
        {
            "ranks": one.world_size,
            "speedup": one.throughput_ratio.expected,
            "low": one.throughput_ratio.low,
            "high": one.throughput_ratio.high,
            "ideal": one.ideal,
            "efficiency": 100 * one.efficiency.expected,
            "step": one.step_ns.expected / 1e6,
        }
        for one in result.forecast
    ]
