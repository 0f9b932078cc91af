"""Taking a run along: reports, and the trace that Perfetto opens. Each is made when it is asked for."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from typing import Literal

import streamlit as st

from traceinsight.api import Loaded
from traceinsight.diagnosis import Diagnosis
from traceinsight.export import write_chrome_trace
from traceinsight.report import FORMATS, ReportOptions

from .context import Context

SIDEBAR = "perfetto_sidebar"
_REPORTS = {
    "html": ("HTML", "text/html"),
    "json": ("JSON", "application/json"),
    "markdown": ("Markdown", "text/markdown"),
}


def draw(context: Context) -> None:
    """Buttons in the sidebar; the trace only where there are traces."""
    with st.sidebar:
        st.caption("Take the report along")
        for kind, (title, mime) in _REPORTS.items():
            name = f"traceinsight{FORMATS[kind].suffixes[0]}"
            _button(title, name, mime, _report(kind, context.diagnosis))
        if context.traces is not None:
            st.caption("All ranks in one trace, for ui.perfetto.dev")
            perfetto_button(context, key=SIDEBAR)


def perfetto_button(context: Context, *, key: str) -> None:
    """The trace of all ranks; nothing where there are no traces."""
    traces = context.traces
    if traces is not None:
        _button(
            "Perfetto trace",
            "traceinsight.json.gz",
            "application/gzip",
            lambda: perfetto(traces(), context.diagnosis),
            key=key,
            width="content" if key != SIDEBAR else "stretch",
        )


def perfetto(loaded: Loaded, diagnosis: Diagnosis) -> bytes:
    """The compressed trace."""
    packed = io.BytesIO()
    with gzip.open(packed, "wt", encoding="ascii") as sink:
        write_chrome_trace(loaded.trace_set, diagnosis, sink)
    return packed.getvalue()


def _report(kind: str, diagnosis: Diagnosis) -> Callable[[], str]:
    return lambda: FORMATS[kind].render(diagnosis, ReportOptions(all_ranks=True))


def _button(
    title: str,
    name: str,
    mime: str,
    make: Callable[[], str | bytes],
    *,
    key: str | None = None,
    width: Literal["stretch", "content"] = "stretch",
) -> None:
    st.download_button(title, data=make, file_name=name, mime=mime, on_click="ignore", width=width, key=key)
