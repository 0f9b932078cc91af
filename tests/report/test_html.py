"""One file that opens from disk: what it shows, and that nothing in it can act or reach the network."""

import re
from html.parser import HTMLParser

import pytest
from msgspec.structs import replace

from tests.report.diagnoses import CASES, HOSTILE_NAME, hostile, late_rank, many_ranks, nothing_measured
from traceinsight.report import FORMATS, ReportOptions
from traceinsight.report.build import build
from traceinsight.report.document import Bullets, Facts, Paragraph, Table
from traceinsight.report.html.bars import MOST_BARS, PARTS, forward_bars, partition_bars
from traceinsight.report.text import clean

OURS = set(
    re.findall(
        r"\w+",
        "html head meta title style body header main footer nav section article figure figcaption div span "
        "p h1 h2 h3 a ul li dl dt dd table thead tbody tr th td code i strong svg g rect text",
    )
)
EMPTY = {"meta"}


class Page(HTMLParser):
    """Tags with their attributes, the visible text, and whether every tag is closed in order."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(source)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in EMPTY and not (self.get_starttag_text() or "").endswith("/>"):
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


def render(case: str) -> str:
    return FORMATS["html"].render(CASES[case](), ReportOptions())


@pytest.mark.parametrize("case", CASES)
def test_the_page_holds_our_elements_only_and_closes_them(case: str) -> None:
    page = Page(render(case))
    assert {tag for tag, _ in page.tags} <= OURS


@pytest.mark.parametrize("case", CASES)
def test_nothing_is_fetched_and_nothing_can_run(case: str) -> None:
    source = render(case)
    page = Page(source)
    for tag, attributes in page.tags:
        assert not {"src", "srcset", "style", "action"} & set(attributes), (tag, attributes)
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith("#")
    style = source[source.index("<style>") : source.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    assert "default-src 'none'; style-src 'unsafe-inline'" in source


@pytest.mark.parametrize("case", [case for case in CASES if case != "hostile"])
def test_everything_the_document_says_is_on_the_page(case: str) -> None:
    text = Page(render(case)).text
    document = build(CASES[case](), ReportOptions())
    said = [document.verdict, document.basis, document.footer]
    for section in document.sections:
        said.append(section.title)
        for block in section.blocks:
            if isinstance(block, Paragraph):
                said.append(block.text)
            elif isinstance(block, Bullets):
                said += block.lines
            elif isinstance(block, Facts):
                said += [part for row in block.rows for part in row]
            elif isinstance(block, Table):
                said += [block.caption, block.legend, *(cell for row in block.rows for cell in row)]
    assert [one for one in said if clean(one) not in text] == []


def test_hostile_names_are_text() -> None:
    page = Page(FORMATS["html"].render(hostile(), ReportOptions()))
    assert "<script>alert(1)</script> a|b `code` two lines gnp.exe" in page.text
    source = FORMATS["html"].render(hostile(), ReportOptions())
    assert "<script" not in source
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]", source)
    assert HOSTILE_NAME not in source


def test_five_thousand_characters_are_cut() -> None:
    assert not re.search("k{200}", FORMATS["html"].render(hostile(), ReportOptions()))


@pytest.mark.parametrize(
    "name", ['"><img src=x onerror=alert(1)>', "</style><script>x</script>", "{{ 7*7 }}"]
)
def test_no_name_leaves_its_place(name: str) -> None:
    diagnosis = late_rank()
    page = Page(FORMATS["html"].render(replace(diagnosis, verdict=name), ReportOptions()))
    assert {tag for tag, _ in page.tags} <= OURS
    assert name in page.text


def test_bars_show_the_partition() -> None:
    chart = partition_bars(late_rank(), all_ranks=False)
    assert chart is not None
    assert [bar.label for bar in chart.bars] == ["0", "1", "2", "3", "4", "5 late", "6", "7"]
    # Rank 0: 100 ms compute, 20 transfer, 40 wait, 2 copy, the other 38 of 200 ms idle, in each of 3 steps.
    shares = {segment.part: segment.share for segment in chart.bars[0].segments}
    assert shares == pytest.approx({"compute": 0.5, "transfer": 0.1, "wait": 0.2, "copy": 0.01, "idle": 0.19})
    starts = [segment.start for segment in chart.bars[0].segments]
    assert starts == pytest.approx([0, 0.5, 0.6, 0.8, 0.81])
    assert chart.parts == ("compute", "transfer", "wait", "copy", "idle")  # unsplit occurs nowhere


@pytest.mark.parametrize("case", CASES)
def test_the_parts_of_a_bar_fill_it(case: str) -> None:
    chart = partition_bars(CASES[case](), all_ranks=True)
    for bar in chart.bars if chart else ():
        assert sum(segment.share for segment in bar.segments) == pytest.approx(1)


def test_forward_bars_hold_exposed_communication() -> None:
    chart = forward_bars(late_rank(), all_ranks=False)
    assert chart is not None
    # 10 ms transfer and 30 ms wait of 80 ms; rank 5 waits for nobody.
    assert [(s.part, s.share) for s in chart.bars[0].segments] == [("transfer", 0.125), ("wait", 0.375)]
    assert [(s.part, s.share) for s in chart.bars[5].segments] == [("transfer", 0.125)]


def test_many_ranks_keep_the_late_and_the_extreme() -> None:
    chart = partition_bars(many_ranks(256), all_ranks=False)
    assert chart is not None
    assert len(chart.bars) <= MOST_BARS
    assert "77 late" in [bar.label for bar in chart.bars]
    assert f"{len(chart.bars)} of 256 ranks" in chart.note
    everyone = partition_bars(many_ranks(256), all_ranks=True)
    assert everyone is not None
    assert len(everyone.bars) == 256


def test_without_measurements_no_chart_and_no_tile_is_drawn() -> None:
    page = Page(FORMATS["html"].render(nothing_measured(), ReportOptions()))
    assert "svg" not in {tag for tag, _ in page.tags}
    assert "tiles" not in {attributes.get("class") for _, attributes in page.tags}
    assert "Not measured: no device activity inside a step was recorded." in page.text


def test_light_and_dark_and_paper_are_provided_for() -> None:
    source = render("late_rank")
    assert "@media screen and (prefers-color-scheme: dark)" in source  # a dark page must not be printed
    assert "@media print" in source
    for part, _ in PARTS:
        assert f"--{part}: #" in source
