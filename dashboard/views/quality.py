"""Data quality: how far all the rest can be trusted."""

from __future__ import annotations

from typing import Any

import streamlit as st

from traceinsight.diagnosis import Diagnosis

from ..context import Context, show
from ..text import name, paragraph
from .parts import number, prose, table


def draw(context: Context) -> None:
    """What was lost, the clocks, what was read, and what the data could not answer."""
    prose(context, "Data quality")
    prose(context, "Not judged")
    st.subheader("Clocks", anchor=False)
    rows = clock_rows(context.diagnosis)
    if rows:
        table(
            rows,
            offset=number("offset", "us", meaning="how far the rank's clock runs ahead of the reference"),
            residual=number("residual", "us", meaning="how well the offset is known"),
        )
        show(
            paragraph(
                "Offsets are taken out of every number; no lateness below the residual is claimed.", "muted"
            )
        )
    else:
        show(paragraph("Not measured: no collective ties the ranks' clocks together.", "muted"))
    prose(context, "The run")
    if context.diagnosis.run.files:
        with st.expander(f"Files read ({len(context.diagnosis.run.files):,})"):
            table([{"file": name(file)} for file in context.diagnosis.run.files])


def clock_rows(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """Ranks whose clock is known, in microseconds."""
    return [
        {
            "rank": clock.rank,
            "offset": clock.offset_ns / 1e3,
            "residual": None if clock.residual_ns is None else clock.residual_ns / 1e3,
        }
        for clock in diagnosis.clocks
        if clock.offset_ns is not None
    ]
