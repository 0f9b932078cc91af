"""Every page with every kind of input, in Streamlit's own test runner."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.builders import JobBuilder
from tests.conftest import REPOSITORY
from traceinsight import api

from dashboard.downloads import perfetto  # isort: skip
from dashboard.views.parts import number  # isort: skip

PAGES = [
    "overview", "ranks", "shards", "communication", "timeline", "work", "whatif", "compare", "scaling",
    "quality",
]  # fmt: skip
INPUTS = [
    "late_rank",
    "healthy",
    "gloo_without_gpu",
    "single_rank",
    "nothing_measured",
    "many_ranks",
    "hostile",
]


def html_of(app: Any) -> str:
    return " ".join(element.proto.body for element in app.get("html"))


def link(app: Any, key: str) -> str:
    """A value of the URL; Streamlit's releases differ in whether it is in a list."""
    value = app.query_params[key]
    return value if isinstance(value, str) else value[0]


@pytest.mark.parametrize("case", INPUTS)
@pytest.mark.parametrize("page", PAGES)
def test_every_page_draws_every_input(page: str, case: str, report_of: Any, open_app: Any) -> None:
    app = open_app(report_of(case), page=page)
    assert [one.value for one in app.exception] == []
    assert "<h1" in html_of(app)
    assert link(app, "page") == page


def test_pages_are_those_of_the_menu(report_of: Any, open_app: Any) -> None:
    app = open_app(report_of("late_rank"))
    menu = app.button_group(key="page")
    assert menu.value == "overview"
    menu.set_value("communication").run()
    assert link(app, "page") == "communication"
    assert "Exposed communication by kind" in [one.value for one in app.subheader]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_draws_real_traces(page: str, open_app: Any) -> None:
    app = open_app(REPOSITORY / "sample_traces" / "late_rank", page=page)
    assert [one.value for one in app.exception] == []
    assert "Rank 2 comes late" in html_of(app)


def test_the_overview_says_what_to_do(report_of: Any, open_app: Any) -> None:
    text = html_of(open_app(report_of("late_rank")))
    assert "Rank 5 comes late to the collectives" in text
    assert "Move tables off rank 5" in text
    # 200 ms step, 30 ms gain: 200 / 170 = 1.18
    assert "1.18x" in text
    assert text.index("Move tables off rank 5") < text.index("Send fewer bytes")  # the order of the roadmap


def test_the_overview_draws_the_roadmap_of_traces(open_app: Any) -> None:
    app = open_app(REPOSITORY / "sample_traces" / "late_rank")
    assert "The way down, change after change" in [one.value for one in app.subheader]
    assert "traceinsight whatif TRACES --edit no-straggler" in app.code[0].value


def test_what_could_not_be_judged_is_on_the_overview(report_of: Any, open_app: Any) -> None:
    text = html_of(open_app(report_of("single_rank")))
    assert "127 of 128 ranks were not captured" in text
    assert "Capture the same steps on all ranks." in text


def test_a_link_leads_to_a_page_and_a_rank(report_of: Any, open_app: Any) -> None:
    app = open_app(report_of("late_rank"), page="ranks", rank="5", show="last")
    assert app.selectbox(key="rank").value == "5"
    assert app.selectbox(key="show").value == "last"
    assert "Why rank 5 was idle" in [one.value for one in app.subheader]


def test_choosing_a_rank_changes_the_link(report_of: Any, open_app: Any) -> None:
    app = open_app(report_of("late_rank"), page="ranks")
    app.selectbox(key="rank").select("3").run()
    assert link(app, "rank") == "3"
    assert "Why rank 3 was idle" in [one.value for one in app.subheader]


def test_values_in_the_link_that_do_not_exist_are_ignored(report_of: Any, open_app: Any) -> None:
    app = open_app(report_of("late_rank"), page="<script>", rank="99", run="-1")
    assert [one.value for one in app.exception] == []
    assert link(app, "page") == "overview"


def test_hostile_names_are_text(report_of: Any, open_app: Any) -> None:
    for page in PAGES:
        app = open_app(report_of("hostile"), page=page)
        text = html_of(app)
        assert "<script" not in text
        assert "\u202e" not in text
        assert "k" * 200 not in text
        for element in app.markdown:  # Markdown would be interpreted
            assert "alert" not in element.value


def test_a_folder_outside_is_refused(tmp_path: Path, open_app: Any) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret").mkdir()
    text = html_of(open_app(inside, traces="../secret"))
    assert "outside the folder that the dashboard was started with" in text


def test_what_is_no_trace_gets_a_message(tmp_path: Path, open_app: Any) -> None:
    (tmp_path / "notes.json").write_text('{"a": 1}')
    app = open_app(tmp_path)
    assert [one.value for one in app.exception] == []
    assert "notes.json: is no profiler trace" in html_of(app)


def test_what_if_predicts_from_traces(open_app: Any) -> None:
    app = open_app(REPOSITORY / "sample_traces" / "late_rank", page="whatif")
    app.multiselect(key="edits_chosen").set_value(["no-straggler=2"])
    app.button[0].click().run()
    assert [one.value for one in app.exception] == []
    assert "The step after each change" in [one.value for one in app.subheader]
    assert list(app.dataframe[0].value["change"]) == ["no-straggler=2"]
    assert app.dataframe[0].value["total"][0] > 1


def test_what_if_shows_where_the_step_of_each_rank_would_go(tmp_path: Path, open_app: Any) -> None:
    app = open_app(JobBuilder(world_size=3).build().write(tmp_path / "job"), page="whatif")
    app.multiselect(key="edits_chosen").set_value(["qcomms=fp8"])
    app.button[0].click().run()
    assert [one.value for one in app.exception] == []
    assert "Where the step of each rank would go" in [one.value for one in app.subheader]


def test_what_if_explains_a_wrong_edit(open_app: Any) -> None:
    app = open_app(REPOSITORY / "sample_traces" / "late_rank", page="whatif")
    app.multiselect(key="edits_chosen").set_value(["narrow=<b>x</b>"])
    app.button[0].click().run()
    text = html_of(app)
    assert "narrow=&lt;b&gt;x&lt;/b&gt;" in text
    assert "<b>x</b>" not in text


def test_what_if_needs_traces(report_of: Any, open_app: Any) -> None:
    assert "A prediction replays the traces" in html_of(open_app(report_of("late_rank"), page="whatif"))


def test_runs_and_folders_can_be_chosen(tmp_path: Path, open_app: Any) -> None:
    root = tmp_path / "both"
    for sample in ("healthy", "late_rank"):
        shutil.copytree(REPOSITORY / "sample_traces" / sample, root / sample)
    app = open_app(root)
    folders = app.selectbox(key="traces")
    assert folders.options == ["all of both", "healthy", "late_rank"]
    assert app.selectbox(key="run").options == ["1", "2"]
    folders.select("healthy").run()
    assert link(app, "traces") == "healthy"
    assert "Healthy" in html_of(app)
    assert [one.value for one in app.exception] == []


def buttons(app: Any) -> list[str]:
    return [one.proto.label for one in app.get("download_button")]


def test_a_trace_for_perfetto_is_offered_where_there_are_traces(report_of: Any, open_app: Any) -> None:
    reports = ["HTML", "JSON", "Markdown"]
    assert buttons(open_app(report_of("late_rank"))) == reports
    assert buttons(open_app(REPOSITORY / "sample_traces" / "late_rank")) == [*reports, "Perfetto trace"]


def test_the_trace_for_perfetto_holds_all_ranks() -> None:
    loaded = api.load(REPOSITORY / "sample_traces" / "late_rank", workers=1)
    document = json.loads(gzip.decompress(perfetto(loaded, api.diagnose(loaded))))
    assert {0, 1, 2, 3} <= {event["pid"] for event in document["traceEvents"]}


def test_a_timeline_opens_at_the_step_of_the_link(open_app: Any) -> None:
    sample = REPOSITORY / "sample_traces" / "late_rank"
    app = open_app(sample, page="timeline")
    assert link(app, "step") == "all"
    number = app.selectbox(key="step").options[1].removeprefix("step ")
    app = open_app(sample, page="timeline", step=number)
    assert app.selectbox(key="step").value == number
    closer = next(one for one in app.button if one.label == "Closer")
    back = next(one for one in app.button if one.label == "Back to the start")
    assert back.disabled
    closer.click().run()
    assert [one.value for one in app.exception] == []
    home, window = app.session_state["window"]
    assert window[1] - window[0] == pytest.approx((home[1] - home[0]) / 2, abs=2)


@pytest.mark.parametrize("kind", ["gpu", "cpu", "one rank", "missing ranks", "unmarked"])
def test_a_timeline_of_every_kind_of_traces(kind: str, tmp_path: Path, open_app: Any) -> None:
    job = JobBuilder(world_size=3, gpu=kind != "cpu", profiler_step=kind != "unmarked").build()
    ranks = {"one rank": [0], "missing ranks": [0, 2]}.get(kind, [0, 1, 2])
    app = open_app(job.write(tmp_path / "job", ranks), page="timeline")
    assert [one.value for one in app.exception] == []
    assert "All ranks on one clock" in [one.value for one in app.subheader]
    assert ("No critical path is drawn" in html_of(app)) == (kind == "unmarked")


def test_a_timeline_needs_traces(report_of: Any, open_app: Any) -> None:
    assert "A timeline needs the traces" in html_of(open_app(report_of("late_rank"), page="timeline"))


def test_small_bandwidths_keep_their_digits() -> None:
    """3.5 MB/s are not 0.0 GB/s."""
    assert number("bus", "GB/s", significant=True)["type_config"]["format"] == "%.3g"


def test_the_matrix_of_an_exchange_can_be_chosen(tmp_path: Path, open_app: Any) -> None:
    folder = JobBuilder(world_size=3).build().write(tmp_path / "job")
    app = open_app(folder, page="communication", exchange="1")
    assert [one.value for one in app.exception] == []
    assert app.selectbox(key="exchange").value == "1"
    assert "All-to-all: bytes from rank to rank" in [one.value for one in app.subheader]
    assert "which ranks share a node was not recorded" in html_of(app)


def test_without_split_sizes_there_is_no_matrix(report_of: Any, open_app: Any) -> None:
    text = html_of(open_app(report_of("late_rank"), page="communication"))
    assert "no split sizes were recorded" in text


def test_a_link_leads_to_one_step_of_a_rank(report_of: Any, open_app: Any) -> None:
    app = open_app(report_of("late_rank"), page="ranks", rank="5", step="11")
    assert app.selectbox(key="step").value == "11"
    assert "Idle time by cause, step 11." in html_of(app)
    app.selectbox(key="step").select("all").run()
    assert link(app, "step") == "all"
    assert "mean over the analysed steps" in html_of(app)
