"""``traceinsight dashboard``: what it starts, and what it says instead."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import REPOSITORY
from traceinsight.cli import dashboard, main


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    calls: list[list[str]] = []
    monkeypatch.setattr(dashboard, "_become", calls.append)
    return calls


def test_it_listens_to_this_machine_only(started: list[list[str]], tmp_path: Path) -> None:
    assert main(["dashboard", str(tmp_path)]) == 0
    (call,) = started
    assert "--server.address=localhost" in call
    assert call[call.index("run") + 1] == str(REPOSITORY / "dashboard" / "app.py")
    assert call[-2:] == ["--", str(tmp_path)]


def test_another_address_is_warned_about(
    started: list[list[str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["dashboard", str(tmp_path), "--host", "0.0.0.0", "--port", "9000"]) == 0
    assert {"--server.address=0.0.0.0", "--server.port=9000"} <= set(started[0])
    assert "no password" in capsys.readouterr().err


def test_without_the_extra_it_says_how_to_install_it(
    started: list[list[str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    real = importlib.util.find_spec

    def absent(name: str, *rest: Any) -> Any:
        return None if name == "streamlit" else real(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", absent)
    assert main(["dashboard", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert "streamlit" in error
    assert "pip install '.[dashboard]'" in error
    assert started == []


def test_a_path_that_is_not_there_is_refused(started: list[list[str]], tmp_path: Path) -> None:
    assert main(["dashboard", str(tmp_path / "nothing")]) == 2
    assert started == []
