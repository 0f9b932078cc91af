"""Pieces that several pages share."""

from __future__ import annotations

from typing import Any

import plotly.graph_objects as go
import streamlit as st

from traceinsight.report import ReportOptions
from traceinsight.report.build import build
from traceinsight.report.document import Section

from ..context import Context, show
from ..text import block, paragraph

_CONFIG = {"displaylogo": False, "modeBarButtonsToRemove": ["select2d", "lasso2d"], "responsive": True}


def chart(title: str, drawing: go.Figure | None, empty: str, *, note: str = "", key: str) -> None:
    """A figure under its heading (if it has one of its own), or the reason why there is none."""
    if title:
        st.subheader(title, anchor=False)
    if drawing is None:
        show(paragraph(empty, "muted"))
        return
    # Streamlit's own plotly theme would replace the colours, and with them their meanings.
    st.plotly_chart(drawing, theme=None, key=key, config=_CONFIG)
    if note:
        show(paragraph(note, "muted"))


def table(rows: list[dict[str, Any]], **columns: Any) -> None:
    """Numbers to sort and to download as CSV (the button stands in the table's corner).

    A column of which nothing was measured is left out.
    """
    used = {key for row in rows for key, value in row.items() if value is not None}
    rows = [{key: value for key, value in row.items() if key in used} for row in rows]
    st.dataframe(rows, hide_index=True, column_config=columns or None)


def number(label: str, unit: str, *, digits: int = 3, significant: bool = False, meaning: str = "") -> Any:
    """A column of numbers with its unit in the heading and its definition on hover.

    ``digits`` are decimals, or significant ones where values may be far apart: 3.5 MB/s are not 0.0 GB/s.
    """
    form = f"%.{digits}{'g' if significant else 'f'}"
    return st.column_config.NumberColumn(f"{label}, {unit}" if unit else label, format=form, help=meaning)


def section(context: Context, beginning: str) -> Section | None:
    """The part of the common document whose title begins so."""
    document = build(context.diagnosis, ReportOptions())
    return next((one for one in document.sections if one.title.startswith(beginning)), None)


def prose(context: Context, beginning: str, title: str | None = None) -> None:
    """That part's paragraphs and facts under its heading; its tables are drawn as charts elsewhere."""
    found = section(context, beginning)
    if found is not None:
        st.subheader(title or found.title, anchor=False)
        show(*(block(one) for one in found.blocks))
