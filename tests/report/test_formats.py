"""Formats by name and by file ending."""

import pytest

from tests.report.diagnoses import late_rank
from traceinsight.report import FORMATS, ReportOptions, format_for


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("report.json", "json"),
        ("REPORT.JSON", "json"),
        ("a/b.md", "markdown"),
        ("x.markdown", "markdown"),
        ("x.txt", "terminal"),
        ("x.html", "html"),
        ("x.xml", None),
        ("json", None),
    ],
)
def test_format_for_a_file_name(name: str, expected: str | None) -> None:
    found = format_for(name)
    assert (found.name if found else None) == expected


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_renders_and_ends_its_last_line(name: str) -> None:
    text = FORMATS[name].render(late_rank(), ReportOptions())
    assert text.endswith("\n")
    assert not text.endswith("\n\n")
