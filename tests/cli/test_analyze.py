"""``traceinsight analyze``: where the result goes, in which format, and that it is never lost."""

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import command
from tests.report.diagnoses import late_rank
from traceinsight.cli import stdout as output
from traceinsight.report import FORMATS, ReportOptions
from traceinsight.report.json_document import read

Capture = pytest.CaptureFixture[str]
Calls = list[dict[str, Any]]


def test_stdout_holds_the_report_and_stderr_nothing(calls: Calls, capsys: Capture) -> None:
    assert command("analyze", "traces") == 0
    captured = capsys.readouterr()
    assert captured.out == FORMATS["terminal"].render(late_rank(), ReportOptions(width=80))
    assert captured.err == ""


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_reaches_stdout(name: str, calls: Calls, capsys: Capture) -> None:
    assert command("analyze", "traces", "--format", name) == 0
    assert capsys.readouterr().out == FORMATS[name].render(late_rank(), ReportOptions(width=80))


def test_options_reach_the_analysis(calls: Calls) -> None:
    assert command("analyze", "a", "b", "--run", "2", "--rank-regex", r"w(\d+)", "--workers", "3") == 0
    assert calls == [{"paths": ["a", "b"], "run": 2, "rank_regex": r"w(\d+)", "workers": 3, "progress": None}]


def test_the_width_follows_the_screen(calls: Calls, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    command("analyze", "traces")
    assert max(map(len, capsys.readouterr().out.splitlines())) == 60


@pytest.mark.parametrize(
    ("file", "kind"), [("r.json", "json"), ("r.md", "markdown"), ("r.txt", "terminal"), ("R.MD", "markdown")]
)
def test_the_ending_of_the_file_names_the_format(
    file: str, kind: str, calls: Calls, tmp_path: Path, capsys: Capture
) -> None:
    target = tmp_path / file
    assert command("analyze", "traces", "-o", str(target)) == 0
    assert target.read_text(encoding="utf-8") == FORMATS[kind].render(late_rank(), ReportOptions(width=80))
    captured = capsys.readouterr()
    assert captured.out == ""
    assert str(target) in captured.err


def test_format_wins_over_the_ending(calls: Calls, tmp_path: Path) -> None:
    target = tmp_path / "report.txt"
    assert command("analyze", "traces", "--format", "json", "-o", str(target)) == 0
    assert read(target.read_text(encoding="utf-8")) == late_rank()


def test_quiet_says_nothing(calls: Calls, tmp_path: Path, capsys: Capture) -> None:
    assert command("analyze", "traces", "--quiet", "-o", str(tmp_path / "r.md")) == 0
    assert capsys.readouterr() == ("", "")


def test_an_existing_file_is_kept_and_nothing_is_analysed(
    calls: Calls, tmp_path: Path, capsys: Capture
) -> None:
    target = tmp_path / "report.json"
    target.write_text("mine")
    assert command("analyze", "traces", "-o", str(target)) == 2
    assert target.read_text() == "mine"
    assert calls == []
    assert "--force" in capsys.readouterr().err


def test_force_replaces_it(calls: Calls, tmp_path: Path) -> None:
    target = tmp_path / "report.json"
    target.write_text("old")
    assert command("analyze", "traces", "-o", str(target), "--force") == 0
    assert json.loads(target.read_text())["schema_version"] == 1


def test_force_writes_through_a_symbolic_link(calls: Calls, tmp_path: Path) -> None:
    real, link = tmp_path / "real.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    assert command("analyze", "traces", "-o", str(link), "--force") == 0
    assert link.is_symlink()
    assert json.loads(real.read_text())["schema_version"] == 1


def test_a_file_made_meanwhile_is_kept(tmp_path: Path) -> None:
    target = tmp_path / "report.md"
    output.check_target(target, force=False)
    target.write_text("somebody else's")
    with pytest.raises(output.UsageError, match="exists already"):
        output.write_file(target, "ours", force=False)
    assert target.read_text() == "somebody else's"
    assert [path.name for path in tmp_path.iterdir()] == ["report.md"]


def test_a_failed_write_leaves_the_old_file_and_no_rest(
    calls: Calls, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    target = tmp_path / "report.md"
    target.write_text("old")

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert command("analyze", "traces", "-o", str(target), "--force") == 2
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["report.md"]
    assert "No space left on device" in capsys.readouterr().err


def test_a_file_system_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, target: Path) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    target = tmp_path / "report.md"
    output.write_file(target, "text", force=False)
    assert target.read_text() == "text"
    with pytest.raises(output.UsageError):
        output.write_file(target, "again", force=False)


def test_the_file_has_the_usual_permissions(calls: Calls, tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        command("analyze", "traces", "-o", str(tmp_path / "r.md"))
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "r.md").stat().st_mode) == 0o644


def test_a_device_is_written_to_and_not_replaced(calls: Calls) -> None:
    assert command("analyze", "traces", "--format", "json", "-o", os.devnull) == 0
    assert not Path(os.devnull).is_file()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["-o", "report.pdf"], "names no format"),
        (["-o", "missing/folder/report.md"], "does not exist"),
        (["-o", "."], "is a folder"),
        (["--force"], "--output"),
        (["--format", "yaml"], "yaml"),
        (["--run", "0"], "--run"),
        (["--workers", "many"], "--workers"),
        (["--nonsense"], "--nonsense"),
    ],
)
def test_a_wrong_call_is_exit_code_2_before_any_work(
    arguments: list[str], says: str, calls: Calls, capsys: Capture, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    if arguments == ["-o", "."]:
        arguments = [*arguments, "--format", "json"]
    assert command("analyze", "traces", *arguments) == 2
    captured = capsys.readouterr()
    assert says in captured.err
    assert captured.out == ""
    assert calls == []


def test_all_ranks_is_passed_on(calls: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[ReportOptions] = []

    def render(self: object, diagnosis: object, options: ReportOptions) -> str:
        seen.append(options)
        return ""

    monkeypatch.setattr(type(FORMATS["terminal"]), "render", render)
    command("analyze", "traces", "--all-ranks")
    command("analyze", "traces")
    assert [one.all_ranks for one in seen] == [True, False]


@pytest.mark.parametrize(
    ("terminal", "arguments", "environment", "colored"),
    [
        (True, [], {}, True),
        (False, [], {}, False),
        (True, ["--no-color"], {}, False),
        (True, [], {"NO_COLOR": "1"}, False),
        (True, [], {"NO_COLOR": ""}, True),  # no-color.org: an empty value does not count
        (True, [], {"TERM": "dumb"}, False),
    ],
)
def test_colour_only_on_a_terminal_that_wants_it(
    terminal: bool, arguments: list[str], environment: dict[str, str], colored: bool, calls: Calls,
    capsys: Capture, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    command("analyze", "traces", *arguments)
    assert ("\x1b[" in capsys.readouterr().out) is colored


def test_the_progress_bar_is_on_stderr_and_only_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    from traceinsight import api  # noqa: PLC0415 - replaced here, not by the fixture

    def analyze(paths: Any, *, progress: Callable[[int, int, str], None] | None, **_: Any) -> Any:
        if progress is not None:
            progress(1, 2, "rank0.json\x1b[2J")
            progress(2, 2, "rank1.json")
        return late_rank()

    monkeypatch.setattr(api, "analyze", analyze)
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    command("analyze", "traces", "--format", "json")
    captured = capsys.readouterr()
    assert read(captured.out) == late_rank()
    assert "Reading traces" in captured.err
    command("analyze", "traces", "--quiet", "--format", "json")
    assert capsys.readouterr().err == ""
