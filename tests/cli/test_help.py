"""Help that teaches, and a reference page that agrees with it."""

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

from tests.cli.conftest import REPOSITORY, command
from traceinsight import __version__
from traceinsight.advice.registry import RULES
from traceinsight.cli.app import app
from traceinsight.cli.result import FormatName
from traceinsight.report import FORMATS

Capture = pytest.CaptureFixture[str]
PAGE = REPOSITORY / "docs" / "cli.md"
CALLS = [["--help"], ["analyze", "--help"], ["compare", "--help"], ["rules", "--help"]]


@pytest.mark.parametrize("call", CALLS)
def test_help_has_an_example_and_fits_80_columns(call: list[str], capsys: Capture) -> None:
    assert command(*call) == 0
    captured = capsys.readouterr()
    assert f"traceinsight {call[0] if len(call) > 1 else 'analyze'} " in captured.out
    assert "Example" in captured.out
    assert max(map(len, captured.out.splitlines())) <= 80
    assert captured.err == ""


@pytest.mark.parametrize("name", [one.callback.__name__ for one in app.registered_commands if one.callback])
def test_no_line_of_help_breaks_on_a_screen_of_80_columns(name: str) -> None:
    # Only the first sentence is wrapped as one paragraph; the help keeps the other lines as they are written.
    (found,) = (
        one.callback for one in app.registered_commands if getattr(one.callback, "__name__", "") == name
    )
    _, *lines = (inspect.getdoc(found) or "").splitlines()
    assert lines
    assert max(map(len, lines)) <= 78  # a column is left free on both sides


def test_the_list_of_rules_fits_80_columns(capsys: Capture) -> None:
    assert command("rules") == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


@pytest.mark.parametrize("call", [["rules", rule.id] for rule in RULES])
def test_what_a_rule_says_fits_the_screen(
    call: list[str], capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for width in (60, 80):
        monkeypatch.setenv("COLUMNS", str(width))
        assert command(*call) == 0
        assert max(map(len, capsys.readouterr().out.splitlines())) <= width


def test_analyze_help_says_what_the_sections_mean(capsys: Capture) -> None:
    command("analyze", "-h")
    text = capsys.readouterr().out
    for word in ("verdict", "ceiling", "transfer", "wait", "could not be judged", "--run", "--rank-regex"):
        assert word in text, word


def test_version(capsys: Capture) -> None:
    assert command("--version") == 0
    assert capsys.readouterr().out == f"traceinsight {__version__}\n"


def test_without_arguments_the_help_is_shown_as_a_usage_error(capsys: Capture) -> None:
    assert command() == 2
    captured = capsys.readouterr()
    assert "analyze" in captured.out + captured.err


def test_format_names_are_those_of_the_reports() -> None:
    assert [name.value for name in FormatName] == list(FORMATS)


def test_rules_lists_every_rule(capsys: Capture) -> None:
    assert command("rules") == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == [rule.id for rule in RULES]


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_a_rule_explains_itself(rule: str, capsys: Capture) -> None:
    assert command("rules", rule) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"{rule}\n")
    for part in ("Detects", "Why it costs", "Evidence", "Remedy", "When this is wrong"):
        assert part in text, part


def test_an_unknown_rule_is_a_usage_error_that_names_the_known(capsys: Capture) -> None:
    assert command("rules", "bad-luck") == 2
    assert "straggler" in capsys.readouterr().err


def options() -> Iterator[tuple[str, str]]:
    """(command, option) of everything the app takes."""
    group = typer.main.get_command(app)
    for name, one in group.commands.items():  # type: ignore[attr-defined]
        for parameter in one.params:
            yield from ((name, option) for option in parameter.opts if option.startswith("--"))


def test_the_reference_page_names_every_option_and_no_other() -> None:
    if not PAGE.exists():
        pytest.fail("docs/cli.md is missing")
    documented = {
        (section, option)
        for section, text in _sections(PAGE)
        for option in re.findall(r"^\| `(--[\w-]+)", text, re.MULTILINE)
    }
    assert documented == set(options())


def _sections(page: Path) -> Iterator[tuple[str, str]]:
    parts = re.split(r"^## `traceinsight (\w+)`.*$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    yield from zip(parts[1::2], parts[2::2], strict=True)
