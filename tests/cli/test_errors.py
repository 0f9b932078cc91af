"""What a user sees when it goes wrong: a message and an exit code, never a traceback."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import command
from traceinsight.base.errors import TraceInsightError, UnreadableInputError, UsageError

Capture = pytest.CaptureFixture[str]
FailWith = Callable[[BaseException], None]


@pytest.mark.parametrize(
    ("kind", "code"), [(UsageError, 2), (UnreadableInputError, 3), (TraceInsightError, 1)]
)
def test_an_error_says_what_where_and_what_to_do(
    kind: type[TraceInsightError], code: int, fail_with: FailWith, capsys: Capture
) -> None:
    fail_with(kind("is empty.", where="rank3.json", what_to_do="Capture it again."))
    assert command("analyze", "traces") == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == "error: rank3.json: is empty.\n  Capture it again.\n"


def test_a_bug_is_one_line_and_asks_for_a_report(fail_with: FailWith, capsys: Capture) -> None:
    fail_with(ValueError("surprise\nsecond line"))
    assert command("analyze", "traces") == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "ValueError: surprise second line" in captured.err
    assert "please report" in captured.err
    assert "Traceback" not in captured.err
    assert len(captured.err.splitlines()) == 2


@pytest.mark.parametrize("error", [ValueError("bug"), UnreadableInputError("bad")])
def test_debugging_adds_the_traceback(
    error: Exception, fail_with: FailWith, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_with(error)
    monkeypatch.setenv("TRACEINSIGHT_DEBUG", "1")
    command("analyze", "traces")
    assert "Traceback" in capsys.readouterr().err


def test_ctrl_c_is_130_and_leaves_no_file(fail_with: FailWith, capsys: Capture, tmp_path: Path) -> None:
    fail_with(KeyboardInterrupt())
    assert command("analyze", "traces", "-o", str(tmp_path / "r.md")) == 130
    assert capsys.readouterr().err == "error: Stopped.\n"
    assert list(tmp_path.iterdir()) == []


def test_a_message_cannot_control_the_terminal(fail_with: FailWith, capsys: Capture) -> None:
    fail_with(UnreadableInputError("bad \x1b[2J\u202e byte", where="a\nb\x07.json"))
    command("analyze", "traces")
    assert capsys.readouterr().err == "error: a b .json: bad  [2J  byte\n"


def test_a_path_that_does_not_exist(capsys: Capture, tmp_path: Path) -> None:
    assert command("analyze", str(tmp_path / "nothing-here")) == 2
    captured = capsys.readouterr()
    assert "nothing-here" in captured.err
    assert captured.out == ""


def test_a_file_that_is_no_trace_is_exit_code_3(capsys: Capture, tmp_path: Path) -> None:
    (tmp_path / "empty.json").write_bytes(b"")
    assert command("analyze", str(tmp_path / "empty.json")) == 3
    assert "empty.json" in capsys.readouterr().err
