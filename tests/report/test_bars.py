"""A chart of bars: its lengths are the numbers, and it fits the screen in every format."""

import pytest
from rich.cells import cell_len

from traceinsight.report import FORMATS, ReportOptions
from traceinsight.report.bar_text import bar_lines
from traceinsight.report.document import Bar, Bars, Document, Section

CHART = Bars(
    caption="Throughput",
    rows=(Bar("8", 0.25, 0.25, "1.0x"), Bar("32", 0.5, 1.0, "2.0x"), Bar("64", 0.0, 0.0, "n/a")),
    legend="dots: ideal",
)
DOCUMENT = Document("Verdict", "Basis", (Section("Chart", (CHART,)),), "Footer")


def test_lengths_are_shares_of_the_room() -> None:
    # 28 columns: 2 for the label, 4 for the text, 2 gaps: room for 20.
    assert bar_lines(CHART, 28) == [
        f" 8 {'█' * 5}{' ' * 15} 1.0x",
        f"32 {'█' * 10}{'·' * 10} 2.0x",
        f"64 {' ' * 20} n/a",
    ]


def test_what_is_there_is_seen_and_nothing_overflows() -> None:
    lines = bar_lines(Bars("x", (Bar("a", 1e-9, 0.0, "t"), Bar("b", 7.0, -3.0, "t"))), 20)
    assert lines[0].count("█") == 1
    assert lines[1].count("█") == 16  # room is 20 - 1 - 1 - 2


@pytest.mark.parametrize("width", [40, 80, 200])
def test_every_readable_format_draws_it(width: int) -> None:
    for name in ("terminal", "markdown", "html"):
        text = FORMATS[name].draw(DOCUMENT, ReportOptions(width=width))
        for said in ("Throughput", "2.0x", "dots: ideal", "Verdict", "Footer"):
            assert said in text, (name, said)
        if name == "terminal":
            assert max(map(cell_len, text.splitlines())) <= width


def test_names_in_it_mean_nothing() -> None:
    hostile = Bars("`x`", (Bar("<script>``` \x1b[31m", 0.5, 1.0, "```\n<b>"),), "<i>")
    document = Document("v", "b", (Section("s", (hostile,)),), "f")
    for name in ("terminal", "markdown", "html"):
        text = FORMATS[name].draw(document, ReportOptions())
        assert "\x1b" not in text
    assert "<script" not in FORMATS["html"].draw(document, ReportOptions())
    assert FORMATS["markdown"].draw(document, ReportOptions()).count("```") == 2
