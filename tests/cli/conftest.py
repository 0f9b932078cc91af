"""The command line without reading traces: ``api.analyze`` is replaced, all else is real."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.report.diagnoses import late_rank
from traceinsight import api
from traceinsight.cli import main

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Arguments of every call of ``api.analyze``, which answers with the late-rank case."""
    made: list[dict[str, Any]] = []

    def analyze(paths: Any, **options: Any) -> Any:
        made.append({"paths": paths, **options})
        return late_rank()

    monkeypatch.setattr(api, "analyze", analyze)
    return made


@pytest.fixture
def fail_with(monkeypatch: pytest.MonkeyPatch) -> Callable[[BaseException], None]:
    """Makes ``api.analyze`` raise."""

    def arrange(error: BaseException) -> None:
        def analyze(*_: Any, **__: Any) -> Any:
            raise error

        monkeypatch.setattr(api, "analyze", analyze)

    return arrange


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A screen of 80 columns and no variables that change the output."""
    monkeypatch.setenv("COLUMNS", "80")
    for name in ("NO_COLOR", "TRACEINSIGHT_DEBUG", "FORCE_COLOR", "PY_COLORS"):
        monkeypatch.delenv(name, raising=False)


def command(*arguments: str) -> int:
    """Run the command line in this process."""
    return main(list(arguments))
