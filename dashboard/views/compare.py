"""Compare: two runs of the folder side by side, with the noise of their steps."""

from __future__ import annotations

from typing import Any

import streamlit as st

from traceinsight import api
from traceinsight.base.errors import TraceInsightError
from traceinsight.base.units import format_ns, format_share
from traceinsight.diagnosis.comparison import Comparison
from traceinsight.report.comparison import build_comparison, interval, says

from ..charts.compare import change_by_part, exposed_by_kind, parts_side_by_side
from ..context import Context, linked_choice, show
from ..runs import UPLOAD
from ..text import block, headline, name, paragraph
from .parts import chart, table
from .whatif import edit_examples

_PROSE = ("Stragglers and findings", "How comparable", "The runs")


def draw(context: Context) -> None:
    """Choose two runs, see what changed."""
    names = context.runs.names()
    if len(names) < 2:
        show(
            paragraph(
                "There is one run here. Start the dashboard with a folder that holds several: a folder of "
                "traces for each, or what analyze --format json wrote.",
                "muted",
            )
        )
        return
    try:
        before, after = _choose(context, names)
        edits = _edits()
        with st.spinner("Reading and comparing the runs"):
            found = compare(context, before, after, edits)
    except TraceInsightError as error:
        show(paragraph(str(error), "critical"))
        return
    _answer(context, found)


def compare(context: Context, before: str, after: str, edits: list[str]) -> Comparison:
    """The comparison; the traces of BEFORE are read again only where an edit is to be replayed."""
    loaded = context.runs.loaded(before) if edits else None
    return api.compare(loaded or context.runs.diagnosis(before), context.runs.diagnosis(after), edits)


def _choose(context: Context, names: list[str]) -> tuple[str, str]:
    for key in ("before", "after"):
        asked = st.query_params.get(key)
        if asked and asked not in names:
            context.runs.resolve(asked)  # says why it is none of the choices
    open_now = UPLOAD if UPLOAD in names else st.query_params.get("traces", "")
    shown = open_now if open_now in names else names[-1]
    _default("after", names, shown)
    _default("before", names, next(one for one in names if one != shown))
    title = context.runs.title
    left, right = st.columns(2)
    with left:
        before = linked_choice("Before", "before", names, names=title)
    with right:
        after = linked_choice("After", "after", names, names=title)
    return before, after


def _default(key: str, names: list[str], value: str) -> None:
    if st.session_state.get(key) not in names and st.query_params.get(key) not in names:
        st.session_state[key] = value


def _edits() -> list[str]:
    known = edit_examples()
    chosen = st.multiselect(
        "What was changed between them (its prediction is held against the measurement)",
        list(known), accept_new_options=True, key="edits_compared",
        format_func=lambda edit: f"{edit}: {known[edit]}" if edit in known else str(edit),
    )  # fmt: skip
    return [str(edit) for edit in chosen]


def _answer(context: Context, found: Comparison) -> None:
    document = build_comparison(found)
    show(headline(document.verdict), paragraph(document.basis, "muted"))
    chart(
        "Where the step changed", change_by_part(found, context.colors),
        "No part of the step was measured in both runs.", key="changes",
        note="The line is the interval of the change over steps; left of zero is shorter. Step: median over "
        "ranks; parts: mean over ranks.",
    )  # fmt: skip
    chart(
        "Both steps in parts", parts_side_by_side(found, context.colors),
        "No step with device activity was recorded.", key="both_steps",
    )  # fmt: skip
    table(part_rows(found))
    if found.predictions or found.hints:
        st.subheader("Predicted and measured", anchor=False)
        if found.predictions:
            table(prediction_rows(found))
        show(
            *(
                paragraph(f"It seems that {one.edit} was applied ({one.reason}).", "muted")
                for one in found.hints
            )
        )
    chart(
        "Exposed communication by kind", exposed_by_kind(found, context.colors),
        "No collective was recorded in the analysed steps.", key="exposed_kinds",
    )  # fmt: skip
    for section in document.sections:
        if section.title.startswith(_PROSE):
            st.subheader(section.title, anchor=False)
            show(*(block(one) for one in section.blocks))


def part_rows(found: Comparison) -> list[dict[str, Any]]:
    """The step, its parts and the causes of idle time."""
    rows = [("step", found.step_time)]
    if found.equal_batch is not None:
        rows.append(("step, equal batch", found.equal_batch))
    rows += [(row.part, row.change) for row in found.partition]
    rows += [(f"idle: {row.part}", row.change) for row in found.idle_by_cause]
    return [
        {
            "part": part,
            "before": format_ns(change.before_ns),
            "after": format_ns(change.after_ns),
            "% of the step before": format_share(change.share),
            "interval": interval(change),
            "says": says(change),
        }
        for part, change in rows
        if change.before_ns or change.after_ns
    ]


def prediction_rows(found: Comparison) -> list[dict[str, Any]]:
    """One row per edit; the last holds all of them and is held against the measurement."""
    return [
        {
            "change": name(row.edit),
            "predicted": format_ns(row.step_ns.expected) if row.step_ns else "not predicted",
            "interval": f"{format_ns(row.step_ns.low)} to {format_ns(row.step_ns.high)}"
            if row.step_ns
            else "",
            "measured": format_ns(row.measured_ns) if row.measured_ns is not None else "",
            "error": format_share(row.error_share) if row.error_share is not None else "",
            "inside the interval": {True: "yes", False: "no", None: ""}[row.inside_interval],
            "why not": name(row.not_predicted),
        }
        for row in found.predictions
    ]
