"""The page that holds runs of several world sizes against each other."""

from pathlib import Path
from typing import Any

import pytest

from tests.builders import JobBuilder
from tests.dashboard.test_pages import html_of
from tests.engine.test_scaling import longer, sizes
from traceinsight.diagnosis.scaling import Scaling

from dashboard.charts.scaling import lost_parts, throughput  # isort: skip
from dashboard.theme import DARK, LIGHT, PARTS  # isort: skip
from dashboard.views.scaling import forecast_rows, lost_rows, point_rows  # isort: skip
from msgspec.structs import replace  # isort: skip


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Runs of 1, 2 and 4 ranks, the last with an exchange that is 3 ms longer, and another of 2 ranks."""
    root = tmp_path / "runs"
    for size in (1, 2):
        JobBuilder(world_size=size).build().write(root / f"{size}gpu")
    JobBuilder(world_size=4, collectives=longer(3_000_000)).build().write(root / "4gpu")
    JobBuilder(world_size=2, steps=3).build().write(root / "again" / "2gpu")
    return root


def titles(app: Any) -> list[str]:
    return [one.value for one in app.subheader]


def link_of(app: Any) -> list[str]:
    value = app.query_params["sizes"]
    return value if isinstance(value, list) else [value]


def test_chosen_runs_are_compared(runs: Path, open_app: Any) -> None:
    app = open_app(runs, page="scaling", traces="1gpu", sizes=["1gpu", "2gpu", "4gpu"])
    assert [one.value for one in app.exception] == []
    text = html_of(app)
    # 4 ranks, a step of 12.259 + 3 ms: 4 x 12.259 / 15.259 = 3.21
    assert "From 1 to 4 ranks throughput grows 3.21x" in text
    assert str(runs) not in text
    assert {"Throughput against ideal", "Where the lost time goes", "Forecast for larger sizes"} <= {
        *titles(app)
    }
    shown = app.dataframe[0].value
    assert list(shown["run"]) == ["1gpu", "2gpu", "4gpu"]
    assert list(shown["speedup"]) == pytest.approx([1, 2, 4 * 12.259 / 15.259])


def test_two_runs_of_one_size_are_refused_with_their_names(runs: Path, open_app: Any) -> None:
    app = open_app(runs, page="scaling", traces="1gpu")
    assert sorted(app.multiselect(key="sizes").value) == ["1gpu", "2gpu", "4gpu", "again/2gpu"]
    text = html_of(app)
    assert "2 runs have 2 ranks" in text
    assert "again/2gpu" in text


def test_choosing_runs_changes_link_and_answer(runs: Path, open_app: Any) -> None:
    app = open_app(runs, page="scaling", traces="1gpu")
    app.multiselect(key="sizes").set_value(["1gpu", "2gpu"]).run()
    assert [one.value for one in app.exception] == []
    assert link_of(app) == ["1gpu", "2gpu"]
    assert "From 1 to 2 ranks throughput grows 2.00x" in html_of(app)
    app.multiselect(key="sizes").set_value(["1gpu"]).run()
    assert "two or more world sizes" in html_of(app)


def test_a_run_outside_the_folder_is_refused(runs: Path, open_app: Any) -> None:
    app = open_app(runs, page="scaling", traces="1gpu", sizes=["../secret", "1gpu"])
    assert [one.value for one in app.exception] == []
    text = html_of(app)
    assert "outside the folder that the dashboard was started with" in text
    assert "throughput grows" not in text


def test_a_report_has_no_other_sizes(report_of: Any, open_app: Any) -> None:
    assert "There is one run here" in html_of(open_app(report_of("late_rank"), page="scaling"))


# Charts --------------------------------------------------------------------------------------------


def test_throughput_is_drawn_beside_ideal() -> None:
    drawing = throughput(sizes(0, 1, 3), LIGHT)
    assert drawing is not None
    ideal, measured, forecast = drawing.data
    assert list(ideal.x) == [8, 16, 32, 64, 128]
    assert list(ideal.y) == [1, 2, 4, 8, 16]
    # Steps of 10, 11 and 13 ms.
    assert list(measured.y) == pytest.approx([1, 2 * 10 / 11, 4 * 10 / 13])
    assert list(forecast.y) == pytest.approx([8 * 10 / 17, 16 * 10 / 25])
    assert all(length > 0 for length in forecast.error_y.array)
    assert all(0 < down < at for down, at in zip(forecast.error_y.arrayminus, forecast.y, strict=True))


def test_lost_parts_are_milliseconds_in_their_colours() -> None:
    drawing = lost_parts(sizes(0, 1, -3), DARK)
    assert drawing is not None
    (bar,) = drawing.data
    assert (bar.name, list(bar.x), list(bar.y)) == ("transfer", ["16", "32"], [1, -3])
    assert bar.marker.color == PARTS["transfer"]


def test_without_parts_nothing_is_drawn_but_the_speed() -> None:
    result = sizes(0, 1, 3)
    bare: Scaling = replace(result, points=[replace(one, parts=None, lost=None) for one in result.points])
    assert lost_parts(bare, LIGHT) is None
    assert throughput(bare, LIGHT) is not None
    assert [row["lost"] for row in lost_rows(bare)] == [1, 3]


def test_parts_that_hardly_change_are_left_out() -> None:
    result = sizes(0, 1)
    point = result.points[1]
    assert point.lost is not None
    nearly = replace(point, lost=replace(point.lost, copy_ns=point.step_ns // 1001))
    some = replace(point, lost=replace(point.lost, copy_ns=point.step_ns // 999))
    for shown, words in ((nearly, ["transfer"]), (some, ["transfer", "copy"])):
        changed = replace(result, points=[result.points[0], shown])
        drawing = lost_parts(changed, LIGHT)
        assert drawing is not None
        assert sorted(one.name for one in drawing.data) == sorted(words)
        assert sorted(lost_rows(changed)[0]) == sorted(["ranks", "lost", *words])


def test_without_a_forecast_none_is_drawn() -> None:
    drawing = throughput(replace(sizes(0, 1), forecast=[], model=None, no_forecast="no"), LIGHT)
    assert drawing is not None
    assert [one.name for one in drawing.data] == ["ideal", "measured"]


def test_hostile_run_names_are_text() -> None:
    result = sizes(0, 1)
    odd = "<script>alert(1)</script>\u202e"
    named = replace(result, points=[replace(one, run=odd) for one in result.points])
    drawing = throughput(named, LIGHT)
    assert drawing is not None
    assert "<script" not in drawing.to_json()
    assert "\\u003cscript" not in drawing.to_json()
    assert "\u202e" not in point_rows(named)[0]["run"]


def test_forecast_rows_hold_the_interval() -> None:
    row = forecast_rows(sizes(0, 1, 3))[0]
    assert row["ranks"] == 64
    assert row["low"] < row["speedup"] < row["high"]
    assert forecast_rows(sizes(0, 1))[0]["low"] is None
