"""``traceinsight compare`` as a user meets it: results, gates, exit codes, documents of all kinds."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.builders import MS, JobBuilder
from tests.conftest import REPOSITORY
from tests.report.diagnoses import CASES, late_rank
from traceinsight.cli import main
from traceinsight.report.json_document import to_json

SAMPLES = REPOSITORY / "sample_traces"
Capture = pytest.CaptureFixture[str]


def command(*arguments: object) -> int:
    return main(["compare", *map(str, arguments), "--workers", "1"])


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``fast`` and ``slow`` (1 ms of 12.3 more), and ``single``, a run of one step."""
    folder = tmp_path_factory.mktemp("runs")
    jobs = {
        "fast": JobBuilder(world_size=2, steps=5),
        "slow": JobBuilder(world_size=2, steps=5, optimizer_ns=3 * MS),
        "single": JobBuilder(world_size=2, steps=1),
    }
    for name, job in jobs.items():
        job.build().write(folder / name)
    return folder


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def test_the_verdict_comes_first_and_lines_fit(runs: Path, capsys: Capture) -> None:
    assert command(runs / "fast", runs / "slow") == 0
    captured = capsys.readouterr()
    assert captured.out.startswith("A step is 8.2% longer")
    assert max(map(len, captured.out.splitlines())) <= 80


def test_json_follows_its_schema(runs: Path, capsys: Capture) -> None:
    assert command(runs / "fast", runs / "slow", "--format", "json", "--fail-on", "idle=5%") == 0
    document = json.loads(capsys.readouterr().out)
    schema: dict[str, Any] = json.loads((REPOSITORY / "docs" / "comparison.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(document)
    assert next(iter(document)) == "schema_version"
    assert document["step_time"]["change_ns"] == 1 * MS


@pytest.mark.parametrize(("ending", "begins"), [("md", "**A step is"), ("html", "<!"), ("txt", "A step is")])
def test_the_file_ending_says_the_format(
    runs: Path, tmp_path: Path, capsys: Capture, ending: str, begins: str
) -> None:
    target = tmp_path / f"change.{ending}"
    assert command(runs / "fast", runs / "slow", "-o", target) == 0
    assert target.read_text(encoding="utf-8").startswith(begins)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "A step is 8.2% longer" in captured.err
    assert command(runs / "fast", runs / "slow", "-o", target) == 2  # never silently overwritten


def test_a_failed_gate_is_exit_1_with_the_result_written(runs: Path, capsys: Capture) -> None:
    assert command(runs / "fast", runs / "slow", "--fail-on", "regression=5%") == 1
    captured = capsys.readouterr()
    assert captured.out.startswith("A step is 8.2% longer")
    assert "error: --fail-on regression: the step grew by 8.2%, limit 5.0%" in captured.err
    assert "bug" not in captured.err


@pytest.mark.parametrize(
    ("after", "limit", "code"),
    [("slow", "regression=9%", 0), ("fast", "regression=0%", 0), ("single", "regression=50%", 1)],
)
def test_gates_and_exit_codes(runs: Path, after: str, limit: str, code: int) -> None:
    assert command(runs / "fast", runs / after, "--fail-on", limit, "-q") == code


@pytest.mark.parametrize(
    "limit",
    ["regression", "regression=", "regression=5", "regression=-1%", "regression=nan%", "regression=1e9%",
     "regression=1_0%", "regression=1e1%",
     "regression=x%", "speed=5%", "=5%", ""],
)  # fmt: skip
def test_a_malformed_limit_is_a_usage_error_that_shows_the_syntax(
    limit: str, tmp_path: Path, capsys: Capture
) -> None:
    assert command(tmp_path, tmp_path, "--fail-on", limit) == 2
    assert "--fail-on regression=5%" in capsys.readouterr().err


def test_a_wrong_edit_is_refused_before_anything_is_read(tmp_path: Path, capsys: Capture) -> None:
    assert command(tmp_path / "not there", tmp_path, "--edit", "magic") == 2
    assert "magic" in capsys.readouterr().err


def test_a_report_stands_for_its_traces(runs: Path, tmp_path: Path, capsys: Capture) -> None:
    baseline = tmp_path / "baseline.json"
    assert main(["analyze", str(runs / "fast"), "-o", str(baseline), "-q"]) == 0
    assert command(runs / "fast", runs / "slow", "-q") == 0
    from_traces = capsys.readouterr().out
    assert command(baseline, runs / "slow", "-q") == 0
    assert capsys.readouterr().out == from_traces
    assert command(baseline, baseline, "-q") == 0
    assert "the same run was given twice" in capsys.readouterr().out.replace("\n  ", " ")


def test_what_a_report_cannot_give_is_a_usage_error(runs: Path, tmp_path: Path, capsys: Capture) -> None:
    baseline = tmp_path / "baseline.json"
    assert main(["analyze", str(runs / "fast"), "-o", str(baseline), "-q"]) == 0
    assert command(baseline, runs / "slow", "--edit", "qcomms=fp8") == 2
    assert "Give the traces of BEFORE" in capsys.readouterr().err
    assert command(baseline, runs / "slow", "--run-before", 1) == 2
    assert "holds one run" in capsys.readouterr().err


def document(**changes: Any) -> str:
    return json.dumps(json.loads(to_json(late_rank())) | changes)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (document(schema_version=2), "schema version 2"),
        (document(partition=[{"rank": 0}]), "no whole diagnosis"),
        (document(partition=None), "no whole diagnosis"),
        (document(step_times=[{"rank": 0, "step": 1, "cpu_ns": -5, "device_ns": None}]), "cannot be"),
        (document(step_times=[{"rank": 0, "step": 1, "cpu_ns": 10**300, "device_ns": None}]), "cannot be"),
        (
            '{"schema_version": 1, "generator": {"name": "traceinsight"}, "verdict": "hm"}',
            "no whole diagnosis",
        ),
        (document(before={}, after={}), "what traceinsight compare wrote"),
        (document(points=[]), "what traceinsight scaling wrote"),
        (document(schema_version="1"), "damaged report"),
        (document()[:20_000], "damaged report"),
        (document(run=json.loads(document())["run"] | {"world_size": 10**400}), "number that cannot be"),
        (document(run=json.loads(document())["run"] | {"batch_per_rank": 2**63}), "number that cannot be"),
        ('{"schema_version": 1, "tables": []}', "no profiler trace"),  # a run manifest
        ('{"schema_version": 1, ' + '"a": [' * 100_000, "no"),
        ('{"schema_version": ', "no"),
        ("", "no"),
    ],
    ids=[
        "version",
        "row",
        "null",
        "negative",
        "huge",
        "hollow",
        "comparison",
        "scaling",
        "text version",
        "cut report",
        "huge world",
        "huge batch",
        "manifest",
        "deep",
        "cut",
        "empty",
    ],
)
def test_a_bad_report_is_unreadable_input(text: str, said: str, tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "report.json"
    path.write_text(text, encoding="utf-8")
    assert command(path, path) == 3
    error = capsys.readouterr().err
    assert said in error
    assert "report.json" in error
    assert "Traceback" not in error


def test_a_report_is_no_trace_and_is_called_a_report(tmp_path: Path, capsys: Capture) -> None:
    path = tmp_path / "report.json"
    path.write_text(document(), encoding="utf-8")
    assert main(["analyze", str(path)]) == 3
    assert "is a report that traceinsight wrote" in capsys.readouterr().err


@pytest.mark.parametrize("before", CASES)
@pytest.mark.parametrize("after", ["late_rank", "nothing_measured", "hostile"])
def test_any_two_diagnoses_can_be_compared(before: str, after: str, tmp_path: Path, capsys: Capture) -> None:
    paths = []
    for number, case in enumerate((before, after)):
        paths.append(tmp_path / f"{number}.json")
        paths[-1].write_text(to_json(CASES[case]()), encoding="utf-8")
    for name in ("terminal", "json", "markdown", "html"):
        assert command(*paths, "--format", name) == 0
        out = capsys.readouterr().out
        if name == "json":
            assert out.isascii()
            continue
        if name == "html":
            assert "<script" not in out
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", out)
        assert "k" * 200 not in out


def test_docs_show_what_the_samples_give(capsys: Capture) -> None:
    page = (REPOSITORY / "docs" / "compare.md").read_text(encoding="utf-8")
    for arguments in re.findall(r"^traceinsight compare (sample_traces/.*)$", page, re.MULTILINE):
        words = [str(REPOSITORY / one) if one.startswith("sample") else one for one in arguments.split()]
        assert command(*words, "-q") == 0
    shown = [
        line for block in re.findall(r"```text\n(.*?)```", page, re.DOTALL) for line in block.splitlines()
    ]
    lines = capsys.readouterr().out.splitlines()
    assert len(shown) >= 6
    assert [line for line in shown if line not in lines] == []
