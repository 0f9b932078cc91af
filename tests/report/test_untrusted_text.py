"""Names out of traces must not move the cursor, style the report, run in a browser or break a table."""

import re
import unicodedata

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.report.diagnoses import HOSTILE_NAME, hostile
from traceinsight.report import FORMATS, ReportOptions
from traceinsight.report.markdown import code, escape
from traceinsight.report.text import NAME_LIMIT, PROSE_LIMIT, clean, file_name, kernel_name

BAD_CATEGORIES = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


@pytest.fixture(scope="module", params=["terminal", "markdown"])
def report(request: pytest.FixtureRequest) -> str:
    return FORMATS[request.param].render(hostile(), ReportOptions())


def test_no_control_bidi_or_invisible_character_is_left(report: str) -> None:
    left = {c for c in report if unicodedata.category(c) in BAD_CATEGORIES and c != "\n"}
    assert left == set()
    assert "title" not in report  # the text of an OSC sequence goes with it
    assert "[31m" not in report
    assert "2J" not in report  # C1 control sequence introducer


def test_markup_of_the_terminal_library_is_shown_as_text() -> None:
    text = FORMATS["terminal"].render(hostile(), ReportOptions(color=True))
    assert "[red]markup[/red]" in re.sub(r"\x1b\[[0-9;]*m", "", text)


def test_five_thousand_characters_are_cut(report: str) -> None:
    assert not re.search(r"k{200}", report.replace("\n", "").replace(" ", ""))
    assert len(report) < 20_000


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("plain", "plain"),
        ("a\tb\r\nc\x00d", "a b cd"),
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]8;;https://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x9b31mred", "red"),
        ("abc\x1b", "abc"),
        ("user\u202etxt.exe", "usertxt.exe"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("line\u2028paragraph\u2029end", "line paragraph end"),
        ("broken \ud800 surrogate", "broken surrogate"),
        ("Z" + "\u0335" * 50, "Z\u0335\u0335"),
        ("größe 大きい", "größe 大きい"),
        ("", ""),
    ],
)
def test_clean(text: str, cleaned: str) -> None:
    assert clean(text) == cleaned


def test_long_texts_keep_what_tells_them_apart() -> None:
    assert clean("ab " * 1000, 20) == "ab ab ab ab ab ab..."
    path = "/runs/" + "x" * 300 + "/rank17.pt.trace.json.gz"
    assert len(file_name(path)) == NAME_LIMIT
    assert file_name(path).startswith("/runs/")
    assert file_name(path).endswith("rank17.pt.trace.json.gz")
    assert len(clean("y" * 10_000_000)) <= PROSE_LIMIT
    assert kernel_name("void (anonymous namespace)::softmax<float>(int)", 40) == "softmax<float>(int)"


def _inline(tokens: list[Token]) -> list[Token]:
    return [child for token in tokens for child in (token.children or [])]


@pytest.mark.parametrize(
    "text",
    [
        "<script>alert(1)</script>", "a | b", "**bold** _it_ ~~no~~", "[link](https://x.example)",
        "![image](https://x.example/i.png)", "`code`", "&lt; &amp;", "# heading", "- list", "1. list",
        "> quote", "$x$", "## forward ##", "    indented code", "--- ", "+ plus", "https://x.example",
        "trailing \\",
    ],
)  # fmt: skip
def test_markdown_shows_the_text_and_nothing_else(text: str) -> None:
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(f"x {escape(text)}")
    assert {token.type for token in _inline(tokens)} <= {"text", "text_special"}
    shown = "".join(token.content for token in _inline(tokens))
    assert shown == f"x {clean(text)}"


def test_markdown_neither_notifies_nor_links() -> None:
    escaped = escape("@everyone see https://evil.example and www.evil.example")
    assert "@" not in escaped
    assert "://" not in escaped
    assert "www." not in escaped


def test_every_hostile_table_row_keeps_its_cells() -> None:
    text = FORMATS["markdown"].render(hostile(), ReportOptions())
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert tables
    for table in tables:
        cells = [len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()]
        assert len(set(cells)) == 1, table


def test_html_in_markdown_is_ours_alone() -> None:
    tokens = (
        MarkdownIt("commonmark").enable("table").parse(FORMATS["markdown"].render(hostile(), ReportOptions()))
    )
    html = [t.content.strip() for t in tokens if t.type == "html_block"]
    html += [t.content for t in _inline(tokens) if t.type == "html_inline"]
    assert html
    for piece in html:
        names = set(re.findall(r"<\s*/?\s*(\w+)", piece))
        assert names <= {"details", "summary", "sub"}, piece


def test_a_code_span_cannot_be_left() -> None:
    assert code("a`b|c") == "`a'b\\|c`"
    assert code("\x1b[0m") == ""
    assert "`" not in code(HOSTILE_NAME)[1:-1]
