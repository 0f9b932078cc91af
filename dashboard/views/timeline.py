"""Timeline: all ranks on one clock, as much of them as a window of the screen can show."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from traceinsight import api
from traceinsight.api import Timeline, View
from traceinsight.diagnosis import Diagnosis

from .. import downloads
from ..charts.timeline import csv_rows, timeline_chart
from ..context import Context, linked_choice, show
from ..text import paragraph
from .parts import chart

MOST_RANKS = 8
"""Ranks drawn unless others are chosen: more rows than this do not fit a screen."""

COLUMNS = 500
"""Pixel columns that a row is cut into; pieces that fall into one cannot be told apart on a screen."""

SHORTEST_NS = 1_000
ALL = "all"
Window = tuple[int, int]


def draw(context: Context) -> None:
    """The chart with its window; everything below the heading is drawn anew when the window moves."""
    if context.timeline is None:
        show(
            paragraph(
                "A timeline needs the traces; a JSON report does not hold them. Open the traces instead.",
                "muted",
            )
        )
        return
    with st.spinner("Laying the ranks out on one clock"):
        timeline = context.timeline()
    if not timeline.rows or timeline.end_ns <= 0:
        chart("Timeline", None, "Not measured: nothing was recorded that has a place in time.", key="none")
        return
    numbers = sorted({step for _, step, _, _ in timeline.steps})
    step = linked_choice(
        "Step", "step", [ALL, *map(str, numbers)],
        names=lambda one: "the whole capture" if one == ALL else f"step {one}",
    )  # fmt: skip
    whole = (0, timeline.end_ns)
    home = whole if step == ALL else timeline.step_ns(int(step)) or whole
    ranks = _ranks(context.diagnosis, sorted({row.rank for row in timeline.rows}))
    _explorer(context, timeline, home, ranks)
    if timeline.critical_path is None:
        show(paragraph(f"No critical path is drawn: {timeline.no_path_because}.", "muted"))
    _downloads(context)


def first_ranks(diagnosis: Diagnosis, ranks: Sequence[int]) -> list[int]:
    """Those a visitor wants to see first: the late ones, then the others from 0."""
    late = [rank for one in diagnosis.stragglers for rank in one.ranks if rank in ranks]
    return sorted([*late, *(rank for rank in ranks if rank not in late)][:MOST_RANKS])


def _ranks(diagnosis: Diagnosis, ranks: list[int]) -> list[int]:
    if len(ranks) <= MOST_RANKS:
        return ranks
    chosen: list[int] = st.multiselect(
        f"Ranks (of {len(ranks)})", ranks, default=first_ranks(diagnosis, ranks), key="timeline_ranks",
        max_selections=4 * MOST_RANKS,
    )  # fmt: skip
    return sorted(chosen) or ranks[:MOST_RANKS]


@st.fragment
def _explorer(context: Context, timeline: Timeline, home: Window, ranks: list[int]) -> None:
    window = _window(home, timeline.end_ns)
    _buttons(window, home, timeline.end_ns)
    seen = api.view(timeline, *window, ranks=ranks, columns=COLUMNS)
    st.subheader("All ranks on one clock", anchor=False)
    drawing = timeline_chart(timeline, seen, context.diagnosis, context.colors)
    if drawing is None:
        show(paragraph("Nothing was recorded for these ranks.", "muted"))
        return
    key = f"timeline-{window[0]}-{window[1]}"  # another window is another chart: its selection starts empty
    event = st.plotly_chart(
        drawing, theme=None, key=key, on_select="rerun", selection_mode="box",
        config={"displaylogo": False, "responsive": True, "modeBarButtonsToRemove": ["lasso2d"]},
    )  # fmt: skip
    chosen = selected(event, window)
    if chosen is not None:
        st.session_state["window"] = (home, chosen)
        st.rerun(scope="fragment")
    show(
        paragraph(
            "Drag across the chart to look closer; the detail is fetched for the window. Pieces too short to "
            "draw are put together, and hovering says how many. The line across the rows is the critical "
            "path: what the end of the steps waited for.",
            "muted",
        )
    )
    st.download_button(
        "What is drawn, as CSV", data=lambda: table_of(timeline, seen), file_name="timeline.csv",
        mime="text/csv", on_click="ignore",
    )  # fmt: skip


def _window(home: Window, end_ns: int) -> Window:
    """The window of this visitor, unless another step was chosen since."""
    kept_home, window = st.session_state.get("window", (home, home))
    return window if kept_home == home and 0 <= window[0] < window[1] <= end_ns else home


def _buttons(window: Window, home: Window, end_ns: int) -> None:
    targets = {
        "Earlier": moved(window, -0.5, end_ns),
        "Later": moved(window, 0.5, end_ns),
        "Closer": scaled(window, 0.5, end_ns),
        "Wider": scaled(window, 2.0, end_ns),
        "Back to the start": home,
    }
    with st.container(horizontal=True):
        for title, target in targets.items():
            st.button(title, key=f"go_{title}", disabled=target == window, on_click=_go, args=(home, target))


def _go(home: Window, target: Window) -> None:
    st.session_state["window"] = (home, target)


def moved(window: Window, share: float, end_ns: int) -> Window:
    """The window shifted by a share of its length, within the capture."""
    length = window[1] - window[0]
    start = min(max(window[0] + round(share * length), 0), max(end_ns - length, 0))
    return start, start + length


def scaled(window: Window, factor: float, end_ns: int) -> Window:
    """The window so many times as long, around its middle, within the capture."""
    length = min(max(round((window[1] - window[0]) * factor), SHORTEST_NS), end_ns)
    start = (window[0] + window[1] - length) // 2
    return moved((start, start + length), 0.0, end_ns)


def selected(event: Mapping[str, Any], window: Window) -> Window | None:
    """The window that was dragged across the chart, None when none was or it is too short."""
    boxes = event.get("selection", {}).get("box", [])
    if not boxes or len(boxes[0].get("x", [])) < 2:
        return None
    edges = sorted(round(1e6 * float(edge)) for edge in boxes[0]["x"])
    start, end = max(edges[0], window[0]), min(edges[-1], window[1])
    return (start, end) if end - start >= SHORTEST_NS and (start, end) != window else None


def table_of(timeline: Timeline, seen: View) -> str:
    """The drawn pieces as CSV."""
    text = io.StringIO()
    writer = csv.DictWriter(
        text, ["rank", "row", "start_ms", "end_ms", "busy_ms", "kind", "pieces", "longest"]
    )
    writer.writeheader()
    writer.writerows(csv_rows(timeline, seen))
    return text.getvalue()


def _downloads(context: Context) -> None:
    st.subheader("Every event", anchor=False)
    show(paragraph("Open this file at ui.perfetto.dev; it holds all ranks, the waits and the critical path."))
    downloads.perfetto_button(context, key="perfetto_timeline")
