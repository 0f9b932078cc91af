"""The page that compares two runs of the folder."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from tests.dashboard.test_pages import html_of, link
from tests.report.diagnoses import CASES
from traceinsight.report.json_document import to_json

from dashboard.runs import Runs  # isort: skip
from dashboard.source import Root  # isort: skip
from dashboard.store import Store  # isort: skip


@pytest.fixture
def both(tmp_path: Path) -> Path:
    """``healthy`` and ``late_rank`` as folders of traces, and a report of a hand-made run."""
    root = tmp_path / "both"
    for sample in ("healthy", "late_rank"):
        shutil.copytree(REPOSITORY / "sample_traces" / sample, root / sample)
    (root / "baseline.json").write_text(to_json(CASES["late_rank"]()), encoding="utf-8")
    return root


def test_two_folders_are_compared(both: Path, open_app: Any) -> None:
    app = open_app(both, page="compare", traces="healthy", before="late_rank", after="healthy")
    assert [one.value for one in app.exception] == []
    assert app.selectbox(key="before").options == ["healthy", "late_rank", "baseline.json"]
    text = html_of(app)
    assert "shorter" in text
    assert "less waiting for late peers" in text
    assert "Exposed communication by kind" in [one.value for one in app.subheader]


def test_choosing_a_run_changes_link_and_answer(both: Path, open_app: Any) -> None:
    app = open_app(both, page="compare", traces="healthy", before="late_rank", after="healthy")
    app.selectbox(key="before").select("healthy").run()
    app.selectbox(key="after").select("late_rank").run()
    assert (link(app, "before"), link(app, "after")) == ("healthy", "late_rank")
    assert "more waiting for late peers" in html_of(app)


def test_a_prediction_is_shown_beside_the_measurement(both: Path, open_app: Any) -> None:
    app = open_app(both, page="compare", traces="healthy", before="late_rank", after="healthy")
    app.multiselect(key="edits_compared").set_value(["no-straggler=2"]).run()
    assert [one.value for one in app.exception] == []
    shown = next(one.value for one in app.dataframe if "predicted" in one.value)
    assert list(shown["change"]) == ["no-straggler=2"]
    assert shown["measured"][0] == "278 ms"


def test_a_report_can_be_compared_but_not_replayed(both: Path, open_app: Any) -> None:
    app = open_app(both, page="compare", traces="healthy", before="baseline.json", after="healthy")
    assert "The devices differ" in html_of(app)
    app.multiselect(key="edits_compared").set_value(["no-straggler=2"]).run()
    assert [one.value for one in app.exception] == []
    assert "report without traces" in html_of(app)


@pytest.mark.parametrize("asked", ["../secret", "/etc", "link"])
def test_a_run_outside_is_refused(asked: str, both: Path, open_app: Any) -> None:
    (both.parent / "secret").mkdir()
    (both / "link").symlink_to(both.parent / "secret")
    app = open_app(both, page="compare", traces="healthy", before=asked)
    assert "outside the folder that the dashboard was started with" in html_of(app)


def test_one_run_has_nothing_to_be_compared_with(open_app: Any) -> None:
    app = open_app(REPOSITORY / "sample_traces" / "late_rank", page="compare")
    assert "There is one run here" in html_of(app)


def test_runs_are_folders_with_traces_and_reports(both: Path) -> None:
    (both / "notes").mkdir()
    (both / "notes" / "run.json").write_text(json.dumps({"schema_version": 1}), encoding="utf-8")
    (both / "late_rank" / "kept.json").write_text(to_json(CASES["healthy"]()), encoding="utf-8")
    assert Runs(Root(both), Store()).names() == [
        "healthy",
        "late_rank",
        "baseline.json",
        "late_rank/kept.json",
    ]
