"""Charts: the numbers that are drawn, worked out by hand; nothing drawn where nothing was measured."""

import re
from typing import Any

import plotly.graph_objects as go
import pytest

from tests.conftest import REPOSITORY
from tests.report.diagnoses import CASES, collective, communication_row, late_rank
from traceinsight.diagnosis import Interval, NanosecondRange, RoadmapEntry
from traceinsight.diagnosis.comparison import Comparison
from traceinsight.diagnosis.prediction import PredictedEdit, RankStepParts, Replay, WhatIf
from traceinsight.engine.comparison import compare

from dashboard.charts.communication import exposed_bars, size_and_bandwidth  # isort: skip
from dashboard.charts.compare import change_by_part, exposed_by_kind, parts_side_by_side  # isort: skip
from dashboard.charts.partition import forward_bars, idle_causes, partition_bars  # isort: skip
from dashboard.charts.prediction import parts_after_edits, step_after_edits  # isort: skip
from dashboard.charts.remedies import step_after_each, waterfall  # isort: skip
from dashboard.charts.steps import cells, heat_map, step_times  # isort: skip
from dashboard.charts.work import kernel_families, phases  # isort: skip
from dashboard.theme import DARK, LIGHT, PARTS, palette  # isort: skip
from msgspec.structs import replace  # isort: skip

CHARTS: dict[str, Any] = {
    "partition": partition_bars,
    "forward": forward_bars,
    "idle": lambda diagnosis, colors: idle_causes(diagnosis.partition, colors),
    "remedies": step_after_each,
    "waterfall": waterfall,
    "wait": lambda diagnosis, colors: heat_map(diagnosis, "wait", colors),
    "last": lambda diagnosis, colors: heat_map(diagnosis, "last", colors),
    "times": step_times,
    "kinds": exposed_bars,
    "sizes": size_and_bandwidth,
    "families": kernel_families,
    "phases": phases,
}


def bars(drawing: go.Figure | None) -> dict[str, list[float]]:
    assert drawing is not None
    return {one.name: list(one.y) for one in drawing.data}


def test_partition_bars_are_percent_of_the_window() -> None:
    found = bars(partition_bars(late_rank(), LIGHT))
    assert list(found) == ["compute", "transfer", "wait", "copy", "idle"]
    # 100, 20, 40, 2 and the other 38 of 200 ms
    assert [values[0] for values in found.values()] == pytest.approx([50, 10, 20, 1, 19])
    assert [sum(rank) for rank in zip(*found.values(), strict=True)] == pytest.approx([100] * 8)


def test_forward_bars_are_percent_of_the_span() -> None:
    found = bars(forward_bars(late_rank(), LIGHT))
    assert found["transfer"][0] == pytest.approx(12.5)  # 10 of 80 ms
    assert found["wait"][0] == pytest.approx(37.5)  # 30 of 80 ms
    assert found["wait"][5] == 0


def test_each_remedy_stands_alone() -> None:
    drawing = step_after_each(late_rank(), LIGHT)
    assert drawing is not None
    (bar,) = drawing.data
    # 200 ms now; straggler frees 30; the exchange frees 10 (8 to 14), from the same 200 ms.
    assert list(bar.x) == pytest.approx([200, 170, 190])
    assert list(bar.error_x.array) == pytest.approx([0, 0, 2])
    assert list(bar.error_x.arrayminus) == pytest.approx([0, 0, 4])
    assert "at best" in bar.y[1]


def entry(edit: str | None, step_ms: float, speedup: float, in_all: float) -> RoadmapEntry:
    """An interval of 10 % around the speedups."""

    def around(value: float) -> Interval:
        return Interval(low=0.9 * value, expected=value, high=1.1 * value)

    return RoadmapEntry(
        rule="straggler", edit=edit, effort="setting", speedup=around(speedup),
        cumulative_speedup=around(in_all),
        step_ns=NanosecondRange(low=0, expected=round(step_ms * 1e6), high=round(2e6 * step_ms)),
    )  # fmt: skip


def test_a_forward_without_exposed_communication_draws_no_empty_axes() -> None:
    hidden = {"exposed_transfer_ns": 0, "exposed_wait_ns": 0, "exposed_unsplit_ns": 0}
    rows = [replace(row, **hidden) for row in late_rank().forward]
    assert forward_bars(replace(late_rank(), forward=rows), LIGHT) is None


def test_the_roadmap_goes_down_change_after_change() -> None:
    """200 ms, 1.25 times as fast is 160, twice as fast is 80; one entry that was not replayed is left out."""
    roadmap = [RoadmapEntry(rule="host-bound"), entry("a", 160, 1.25, 1.25), entry("b", 80, 2, 2.5)]
    drawing = waterfall(replace(late_rank(), roadmap=roadmap), LIGHT)
    assert drawing is not None
    bar, dots = drawing.data
    assert list(bar.base) == pytest.approx([0, 160, 80, 0])
    assert list(bar.x) == pytest.approx([200, 40, 80, 80])
    assert list(dots.x) == pytest.approx([160, 80])
    # 200 / (0.9 * 1.25) = 177.8; 200 / (1.1 * 1.25) = 145.5
    assert dots.error_x.array[0] == pytest.approx(200 / 1.125 - 160)
    assert dots.error_x.arrayminus[0] == pytest.approx(160 - 200 / 1.375)


def test_a_larger_batch_is_drawn_per_example() -> None:
    """Twice the batch in 250 ms instead of 200: 1.6 times as fast, 125 ms for today's batch."""
    drawing = waterfall(replace(late_rank(), roadmap=[entry("batch=2", 250, 1.6, 1.6)]), LIGHT)
    assert drawing is not None
    assert list(drawing.data[0].x) == pytest.approx([200, 75, 125])


def test_heat_map_has_a_cell_per_rank_and_step() -> None:
    drawing = heat_map(late_rank(), "wait", LIGHT)
    assert drawing is not None
    (heat,) = drawing.data
    assert list(heat.x) == ["10", "11", "12"]
    assert len(heat.z) == 8
    assert list(heat.z[0]) == pytest.approx([40, 40, 40])
    assert list(heat.z[5]) == pytest.approx([1, 1, 1])
    assert heat.zmin == 0


def test_a_missing_cell_is_empty_not_zero() -> None:
    diagnosis = late_rank()
    fewer = [row for row in diagnosis.partition if (row.rank, row.step) != (3, 11)]
    drawing = heat_map(replace(diagnosis, partition=fewer), "wait", LIGHT)
    assert drawing is not None
    assert drawing.data[0].z[3][1] is None


def test_last_arrivals_count_whole_synchronising_collectives_only() -> None:
    two = [0, 1]
    some = [
        collective(step=1, ranks=two, last_rank=1),
        collective(step=1, ranks=two, last_rank=1),
        collective(step=1, ranks=two, last_rank=0),
        collective(step=1, ranks=two, last_rank=0, synchronising=False),
        collective(step=1, ranks=two, last_rank=0, unmatched_ranks=[2]),
        collective(step=1, ranks=two, last_rank=None),
    ]
    found = cells(replace(late_rank(), collectives=some), "last")
    assert found == {(0, 1): pytest.approx(1 / 3), (1, 1): pytest.approx(2 / 3)}


def test_kinds_with_one_name_stay_apart() -> None:
    rows = [communication_row(phase="forward"), communication_row(phase="backward")]
    drawing = exposed_bars(replace(late_rank(), communication=rows), LIGHT)
    assert drawing is not None
    for one in drawing.data:
        assert len(set(one.y)) == 2


def test_a_prediction_shows_each_edit_on_top_of_the_others() -> None:
    def edit(name: str, low: int, expected: int, high: int) -> PredictedEdit:
        speedup = Interval(low=1.0, expected=1.1, high=1.2)
        return PredictedEdit(
            edit=name, step_ns=NanosecondRange(low=low, expected=expected, high=high), speedup=speedup,
            cumulative_speedup=speedup, per_example_factor=1.0, not_applicable=None,
        )  # fmt: skip

    skipped = PredictedEdit(
        edit="fuse", step_ns=None, speedup=None, cumulative_speedup=None, per_example_factor=1.0,
        not_applicable="no kernels",
    )  # fmt: skip
    answer = WhatIf(
        run=late_rank().run,
        replay=Replay(residual_share=0.01, worst_step=0.02, predicted=True, reason=None),
        step_ns=10_000_000,
        edits=[edit("a", 7_000_000, 8_000_000, 9_500_000), skipped],
    )
    drawing = step_after_edits(answer, LIGHT)
    assert drawing is not None
    (bar,) = drawing.data
    assert list(bar.x) == pytest.approx([10, 8])
    assert list(bar.error_x.array) == pytest.approx([0, 1.5])
    assert list(bar.error_x.arrayminus) == pytest.approx([0, 1])
    assert step_after_edits(replace(answer, edits=[skipped]), LIGHT) is None


def step_parts(rank: int, wait_ns: int) -> RankStepParts:
    return RankStepParts(
        rank=rank, compute_ns=6_000_000, transfer_ns=1_000_000, wait_ns=wait_ns, copy_ns=0, idle_ns=0,
        replica_sync_ns=0,
    )  # fmt: skip


def test_parts_of_the_step_stand_on_each_other_now_and_after() -> None:
    answer = WhatIf(
        run=late_rank().run,
        replay=Replay(residual_share=0.01, worst_step=0.02, predicted=True, reason=None),
        step_ns=10_000_000,
        edits=[],
        parts_before=[step_parts(4, 3_000_000), step_parts(6, 0)],
        parts_after=[step_parts(4, 500_000), step_parts(6, 0)],
    )
    drawing = parts_after_edits(answer, LIGHT)
    assert drawing is not None
    assert list(drawing.layout.xaxis.ticktext) == ["4", "6"]
    bars = {(bar.name, bar.opacity): (list(bar.base), list(bar.y)) for bar in drawing.data}
    assert set(bars) == {(part, pale) for part in ("compute", "transfer", "wait") for pale in (0.45, 1)}
    assert bars["wait", 0.45] == ([7, 7], [3, 0])
    assert bars["wait", 1] == ([7, 7], [0.5, 0])
    assert {bar.marker.color for bar in drawing.data if bar.name == "wait"} == {PARTS["wait"]}
    assert [bar.opacity for bar in drawing.data if bar.showlegend] == [1, 1, 1]
    assert parts_after_edits(replace(answer, parts_after=[]), LIGHT) is None


@pytest.mark.parametrize("chart", CHARTS)
def test_nothing_measured_draws_nothing(chart: str) -> None:
    assert CHARTS[chart](CASES["nothing_measured"](), LIGHT) is None


@pytest.mark.parametrize("chart", CHARTS)
def test_hostile_names_mean_nothing_to_plotly(chart: str) -> None:
    drawing = CHARTS[chart](CASES["hostile"](), LIGHT)
    if drawing is None:
        return
    text = drawing.to_json()
    assert "<script" not in text
    assert "\\u003cscript" not in text
    assert "\\u202e" not in text
    assert "k" * 100 not in text


@pytest.mark.parametrize("colors", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("chart", CHARTS)
def test_a_colour_has_one_meaning(chart: str, colors: Any) -> None:
    """What is named after a part has that part's colour."""
    drawing = CHARTS[chart](replace(late_rank(), roadmap=[entry("a", 160, 1.25, 1.25)]), colors)
    for one in drawing.data:
        if one.name in {*PARTS, "idle"}:
            assert one.marker.color == colors.part(one.name)


def test_the_report_and_the_dashboard_share_their_colours() -> None:
    css = (REPOSITORY / "traceinsight" / "report" / "templates" / "report.css").read_text(encoding="utf-8")
    light, dark = css.split("@media screen and (prefers-color-scheme: dark)")[:2]
    for part, color in PARTS.items():
        assert f"--{part}: {color}" in light
        assert f"--{part}:" not in dark
    for kind, text in ((LIGHT, light), (DARK, dark)):
        found = dict(re.findall(r"--(\w+): (#\w{6})", text))
        assert [found[name] for name in ("idle", "ink", "muted", "critical", "major", "minor", "good")] == [
            kind.idle, kind.ink, kind.muted, kind.critical, kind.major, kind.minor, kind.good,
        ]  # fmt: skip


def test_the_palette_follows_the_page() -> None:
    assert palette("dark") is DARK
    assert palette("light") is LIGHT
    assert palette(None) is LIGHT


def compared(case: str) -> Comparison:
    return compare(CASES[case](), late_rank(), version="1")


def test_a_change_is_drawn_with_its_bounds() -> None:
    # Three steps of 200 ms, then of 230 ms; the added 30 ms are idle.
    slower = [
        replace(row, window_ns=230_000_000, idle_ns=row.idle_ns + 30_000_000) for row in late_rank().partition
    ]
    found = compare(late_rank(), replace(late_rank(), partition=slower), version="1")
    drawing = change_by_part(found, LIGHT)
    assert drawing is not None
    (bar,) = drawing.data
    assert [text.partition("<br>")[0] for text in bar.y] == [
        "step",
        "compute",
        "transfer",
        "wait",
        "copy",
        "idle",
    ]
    assert list(bar.x) == pytest.approx([30, 0, 0, 0, 0, 30])
    assert bar.y[0].endswith("15.0%")
    assert bar.y[1].endswith("no change")
    both = parts_side_by_side(found, LIGHT)
    assert both is not None
    assert sum(one.x[0] for one in both.data) == pytest.approx(200)
    assert sum(one.x[1] for one in both.data) == pytest.approx(230)


@pytest.mark.parametrize("draw", [change_by_part, parts_side_by_side, exposed_by_kind])
def test_comparisons_of_nothing_draw_nothing_and_hostile_names_are_text(draw: Any) -> None:
    nothing = compare(CASES["nothing_measured"](), CASES["nothing_measured"](), version="1")
    assert draw(nothing, LIGHT) is None
    drawing = draw(compared("hostile"), LIGHT)
    assert drawing is not None
    text = drawing.to_json()
    assert "<script" not in text
    assert "\\u003cscript" not in text
    assert "k" * 100 not in text
