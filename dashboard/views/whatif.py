"""What-if: the step with chosen changes, by replay."""

from __future__ import annotations

from typing import Any

import streamlit as st

from traceinsight import api
from traceinsight.base.errors import TraceInsightError
from traceinsight.base.units import format_ns, format_share
from traceinsight.diagnosis.prediction import WhatIf

from ..charts.prediction import parts_after_edits, step_after_edits
from ..context import Context, show
from ..text import name, paragraph
from .parts import chart, number, table


def draw(context: Context) -> None:
    """Choose edits, see the replayed step."""
    if context.traces is None:
        show(
            paragraph(
                "A prediction replays the traces; a JSON report does not hold them. Open the traces instead.",
                "muted",
            )
        )
        return
    show(
        paragraph(
            "Choose changes in the order to apply them. Each is predicted on what the ones before it have "
            "left; gains are never added up. Write your own value for any of them, such as narrow=4."
        )
    )
    known = edit_examples()
    with st.form("edits", border=False):
        edits = st.multiselect(
            "Changes", list(known), accept_new_options=True, key="edits_chosen",
            format_func=lambda edit: f"{edit}: {known[edit]}" if edit in known else str(edit),
        )  # fmt: skip
        asked = st.form_submit_button("Predict", type="primary")
    if asked and not edits:
        show(paragraph("Choose at least one change.", "muted"))
    elif asked:
        _answer(context, [str(edit) for edit in edits])


def edit_examples() -> dict[str, str]:
    """Each edit as it is written, and what it does."""
    parts = (line.split(maxsplit=1) for line in api.edit_help())
    return {written: said[0] if said else "" for written, *said in parts}


def _answer(context: Context, edits: list[str]) -> None:
    assert context.traces is not None
    try:
        with st.spinner("Replaying the measured steps"):
            answer = api.whatif(context.traces(), edits)
    except TraceInsightError as error:
        show(paragraph(str(error), "critical"))
        return
    if answer.step_ns is None:
        show(paragraph(f"Nothing is predicted: {answer.replay.reason}.", "strong"))
        return
    chart(
        "The step after each change", step_after_edits(answer, context.colors),
        "None of these changes applies to this run.", key="predicted",
        note=f"Replay explains the measured steps to within {format_share(answer.replay.residual_share)} of "
        "the step. The line is the interval of the prediction.",
    )  # fmt: skip
    drawing = parts_after_edits(answer, context.colors)
    if drawing is not None and any(edit.step_ns for edit in answer.edits):
        chart(
            "Where the step of each rank would go", drawing, "", key="parts_after",
            note="Replayed: at the left, pale, the step now; at the right with all of these changes that "
            "apply. What vanishes in one part may return in another.",
        )  # fmt: skip
    table(
        edit_rows(answer),
        alone=number(
            "speedup of this change",
            "",
            digits=2,
            meaning="step time before it over that after it, per example",
        ),
        total=number("speedup in all", "", digits=2, meaning="today's step time over that, per example"),
    )


def edit_rows(answer: WhatIf) -> list[dict[str, Any]]:
    """One row per edit; a larger batch counts per example, because its step holds more of them."""
    return [
        {
            "change": name(edit.edit),
            "step": format_ns(edit.step_ns.expected) if edit.step_ns else "does not apply",
            "interval": f"{format_ns(edit.step_ns.low)} to {format_ns(edit.step_ns.high)}"
            if edit.step_ns
            else "",
            "alone": speedups[0] if speedups else None,
            "total": speedups[1] if speedups else None,
            "why not": name(edit.not_applicable),
        }
        for edit, speedups in zip(answer.edits, answer.speedups_per_example(), strict=True)
    ]
