"""Inputs of each kind, and a page of the dashboard run without a browser."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.report.diagnoses import CASES
from traceinsight.report import FORMATS, ReportOptions

if os.environ.get("CI") != "true":
    pytest.importorskip("streamlit", reason="the dashboard extra is not installed")

APP = REPOSITORY / "dashboard" / "app.py"


@pytest.fixture
def report_of(tmp_path: Path) -> Callable[[str], Path]:
    """The JSON report of a diagnosis made by hand."""

    def write(case: str) -> Path:
        path = tmp_path / f"{case}.json"
        path.write_text(FORMATS["json"].render(CASES[case](), ReportOptions()), encoding="utf-8")
        return path

    return write


@pytest.fixture
def open_app(monkeypatch: pytest.MonkeyPatch) -> Callable[..., "object"]:
    """Run the app on a path with values in its URL; returns Streamlit's AppTest after its first run."""
    from streamlit.testing.v1 import AppTest  # noqa: PLC0415 - the extra may be missing

    def run(path: Path, **url: str) -> AppTest:
        monkeypatch.setattr(sys, "argv", [str(APP), str(path)])
        app = AppTest.from_file(str(APP), default_timeout=120)
        for key, value in url.items():
            app.query_params[key] = value
        return app.run()

    return run


def find_chromium() -> str | None:
    """The system's Chromium."""
    return next((found for name in ("chromium", "chromium-browser") if (found := shutil.which(name))), None)
