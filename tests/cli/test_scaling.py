"""``traceinsight scaling`` as a user calls it: formats, files, exit codes, and the example of its page."""

import json
import re
from pathlib import Path

import jsonschema
import msgspec
import pytest

from tests.builders import JobBuilder
from tests.cli.conftest import REPOSITORY, command
from traceinsight.diagnosis.scaling import Scaling

Capture = pytest.CaptureFixture[str]
PAGE = REPOSITORY / "docs" / "scaling.md"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Healthy runs of 1, 2 and 4 ranks."""
    folder = tmp_path_factory.mktemp("runs")
    return [str(JobBuilder(world_size=size).build().write(folder / f"{size}gpu")) for size in (1, 2, 4)]


def test_the_screen_shows_the_answer_first_and_nothing_on_stderr(runs: list[str], capsys: Capture) -> None:
    assert command("scaling", *runs) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert lines[0].startswith("From 1 to 4 ranks throughput grows 4.00x")
    assert max(map(len, lines)) <= 80
    assert re.search(r"^4 █{20,} +4\.00x, 100%$", captured.out, re.MULTILINE)
    assert captured.err == ""


def test_json_is_the_typed_result(runs: list[str], capsys: Capture) -> None:
    assert command("scaling", *runs, "--format", "json") == 0
    text = capsys.readouterr().out
    assert next(iter(json.loads(text))) == "schema_version"
    result = msgspec.json.decode(text, type=Scaling)
    assert [point.world_size for point in result.points] == [1, 2, 4]
    jsonschema.validate(json.loads(text), msgspec.json.schema(Scaling))


@pytest.mark.parametrize("name", ["scaling.md", "scaling.html", "scaling.json", "scaling.txt"])
def test_a_file_says_its_format_by_its_name(
    name: str, runs: list[str], tmp_path: Path, capsys: Capture
) -> None:
    assert command("scaling", *runs, "-o", str(tmp_path / name)) == 0
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "4.00x" in captured.err
    assert "4.0" in (tmp_path / name).read_text(encoding="utf-8")
    assert command("scaling", *runs, "-o", str(tmp_path / name)) == 2  # kept


def test_an_input_is_never_replaced(runs: list[str]) -> None:
    trace = Path(runs[0]) / "rank0.pt.trace.json.gz"
    before = trace.read_bytes()
    assert command("scaling", *runs, "-f", "json", "--force", "-o", str(trace)) == 2
    assert trace.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "code", "said"),
    [
        ("one", 2, "several world sizes"),
        ("twice", 2, "2 runs have 2 ranks"),
        ("absent", 2, "matches no file"),
        ("no_trace", 3, "no profiler trace"),
        ("empty", 3, "holds no"),
    ],
)
def test_what_cannot_be_compared_gets_a_message(
    name: str, code: int, said: str, runs: list[str], tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.json").write_text('{"a": 1}')
    others = {
        "one": [], "twice": [runs[1]], "absent": [str(tmp_path / "nowhere")],
        "no_trace": [str(tmp_path / "notes.json")], "empty": [str(tmp_path / "empty")],
    }  # fmt: skip
    assert command("scaling", runs[1], *others[name]) == code
    captured = capsys.readouterr()
    assert said in captured.err
    assert captured.out == ""
    assert "Traceback" not in captured.err


def test_hostile_names_and_manifests_are_text(runs: list[str], tmp_path: Path, capsys: Capture) -> None:
    odd = tmp_path / "\x1b[31m<script>`|"
    odd.symlink_to(runs[2])
    for form in ("terminal", "markdown", "html"):
        assert command("scaling", runs[0], str(odd), "--format", form) == 0
        text = capsys.readouterr().out
        assert "\x1b" not in text
        if form == "html":
            assert "<script" not in text


def test_help_teaches_with_an_example(capsys: Capture) -> None:
    assert command("scaling", "--help") == 0
    text = capsys.readouterr().out
    assert "traceinsight scaling runs/1node" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_example_of_the_page_is_current(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    commands, shown = re.findall(
        r"<!-- run -->\n```sh\n(.*?)```.*?```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL
    )[0]
    for line in commands.splitlines():
        assert command(*line.split()[1:], "-q") == 0
    assert capsys.readouterr().out.startswith(shown.rstrip())
