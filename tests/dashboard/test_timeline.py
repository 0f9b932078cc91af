"""The timeline's chart, and how its window moves."""

import csv
import io
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from tests.report.diagnoses import CASES, HOSTILE_NAME, late_rank
from traceinsight import api
from traceinsight.api import CATEGORIES, PathRow, Row, Timeline

from dashboard.charts.timeline import timeline_chart  # isort: skip
from dashboard.theme import LIGHT, PARTS  # isort: skip
from dashboard.views.timeline import first_ranks, moved, scaled, selected, table_of  # isort: skip

MS = 1_000_000


def columns(pieces: list[tuple[float, float, str, int]]) -> dict[str, Any]:
    """(start ms, end ms, category, name) as a row's columns."""
    return {
        "start_ns": np.array([round(start * MS) for start, *_ in pieces], dtype=np.int64),
        "end_ns": np.array([round(end * MS) for _, end, *_ in pieces], dtype=np.int64),
        "category": np.array([CATEGORIES.index(one[2]) for one in pieces], dtype=np.int8),
        "name": np.array([one[3] for one in pieces], dtype=np.int32),
    }


def timeline() -> Timeline:
    """Rank 0 waits from 2 to 6 for rank 5, which computes until then; both transfer until 7."""
    path = [(0, 6, "compute", 1), (6, 7, "transfer", 2)]
    return Timeline(
        origin_ns=0,
        end_ns=10 * MS,
        names=("forward", HOSTILE_NAME, "all_to_all"),
        rows=(
            Row(0, "host", **columns([(0, 2, "host", 0)])),
            Row(0, "compute", **columns([(0, 2, "compute", 1)])),
            Row(0, "communication", **columns([(2, 6, "wait", 2), (6, 7, "transfer", 2)])),
            Row(5, "compute", **columns([(0, 6, "compute", 1)])),
            Row(5, "communication", **columns([(6, 7, "transfer", 2)])),
        ),
        steps=((0, 10, 0, 7 * MS), (5, 10, 1 * MS, 8 * MS)),
        critical_path=PathRow(-1, "critical path", **columns(path), ranks=np.array([5, 0], dtype=np.int32)),
        no_path_because=None,
    )


def drawn(start_ms: float = 0, end_ms: float = 10, *, ranks: tuple[int, ...] = (0, 5)) -> go.Figure:
    one = timeline()
    seen = api.view(one, round(start_ms * MS), round(end_ms * MS), ranks=ranks, columns=100)
    drawing = timeline_chart(one, seen, late_rank(), LIGHT)
    assert drawing is not None
    return drawing


def bar(drawing: go.Figure, name: str) -> list[tuple[float, float]]:
    """(begin, length) in ms of what a legend entry stands for."""
    return sorted(
        (base, x) for one in drawing.data if one.name == name for base, x in zip(one.base, one.x, strict=True)
    )


def test_pieces_stand_where_they_were_in_the_colour_of_their_kind() -> None:
    drawing = drawn()
    assert bar(drawing, "wait") == [(2, 4)]
    assert bar(drawing, "transfer") == [(6, 1)] * 3  # both ranks, and the critical path
    for one in drawing.data:
        if one.name in PARTS:
            assert one.marker.color == PARTS[one.name]


def test_a_window_cuts_pieces_off() -> None:
    drawing = drawn(3, 6.5)
    assert bar(drawing, "wait") == [(3, 3)]
    assert bar(drawing, "transfer") == [(6, 0.5)] * 3
    assert list(drawing.layout.xaxis.range) == [3, 6.5]


def test_the_critical_path_leads_through_the_rows_of_its_ranks() -> None:
    drawing = drawn()
    (trail,) = [one for one in drawing.data if one.name == "critical path"]
    rows = dict(zip(drawing.layout.yaxis.ticktext, drawing.layout.yaxis.tickvals, strict=True))
    assert list(trail.x) == [0, 6, 6, 7]
    assert list(trail.y) == pytest.approx(
        [rows["<b>5 (late) compute</b>"] + 0.36] * 2 + [rows["0 comm."] + 0.36] * 2
    )


def test_the_path_is_broken_where_its_rank_is_not_shown() -> None:
    (trail,) = [one for one in drawn(ranks=(0,)).data if one.name == "critical path"]
    assert trail.y[0] is None
    assert trail.y[2] is not None


def test_findings_span_the_analysed_steps() -> None:
    # from the first rank's start to the last rank's end
    assert bar(drawn(), "findings") == [(0, 8)]


def test_hostile_names_mean_nothing_to_plotly() -> None:
    text = drawn().to_json()
    assert "<script" not in text
    assert "\\u003cscript" not in text
    assert "\\u202e" not in text
    assert "k" * 100 not in text


def test_no_rank_draws_nothing() -> None:
    one = timeline()
    seen = api.view(one, 0, 10 * MS, ranks=[], columns=10)
    assert timeline_chart(one, seen, CASES["nothing_measured"](), LIGHT) is None


def test_the_table_holds_what_is_drawn() -> None:
    one = timeline()
    rows = list(csv.DictReader(io.StringIO(table_of(one, api.view(one, 0, 10 * MS, ranks=[0], columns=100)))))
    assert [(row["rank"], row["row"], row["kind"], row["start_ms"]) for row in rows] == [
        ("0", "host", "host", "0.0"),
        ("0", "compute", "compute", "0.0"),
        ("0", "communication", "wait", "2.0"),
        ("0", "communication", "transfer", "6.0"),
        ("5", "critical path", "compute", "0.0"),
        ("0", "critical path", "transfer", "6.0"),
    ]


@pytest.mark.parametrize(
    ("window", "share", "expected"),
    [
        ((40, 60), 0.5, (50, 70)),
        ((40, 60), -0.5, (30, 50)),
        ((90, 100), 0.5, (90, 100)),
        ((0, 10), -1, (0, 10)),
    ],
)
def test_a_window_moves_within_the_capture(
    window: tuple[int, int], share: float, expected: tuple[int, int]
) -> None:
    assert moved(window, share, 100) == expected


def test_a_window_scales_around_its_middle() -> None:
    assert scaled((40_000, 60_000), 0.5, 100_000) == (45_000, 55_000)
    assert scaled((0, 20_000), 2.0, 100_000) == (0, 40_000)
    assert scaled((0, 100_000), 2.0, 100_000) == (0, 100_000)
    assert scaled((500, 1_500), 0.5, 100_000) == (500, 1_500)  # no shorter than a microsecond


def test_what_was_dragged_across_is_the_next_window() -> None:
    def event(*x: float) -> dict[str, Any]:
        return {"selection": {"box": [{"x": list(x)}] if x else []}}

    assert selected(event(2.5, 1.0), (0, 10 * MS)) == (1_000_000, 2_500_000)
    assert selected(event(-3, 4), (0, 10 * MS)) == (0, 4_000_000)
    assert selected(event(2.0, 2.0001), (0, 10 * MS)) is None  # a click, not a drag
    assert selected(event(), (0, 10 * MS)) is None
    assert selected({}, (0, 10 * MS)) is None


def test_late_ranks_are_shown_first() -> None:
    assert first_ranks(late_rank(), list(range(8))) == list(range(8))
    assert first_ranks(late_rank(), [*range(100, 120), 5]) == [5, *range(100, 107)]
