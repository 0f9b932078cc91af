"""The report as one HTML file: opens from disk, asks no network for anything, runs no script, prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from traceinsight.diagnosis import Diagnosis
from traceinsight.report.build import build
from traceinsight.report.document import Block, Document, Paragraph, Section
from traceinsight.report.html.bars import BarChart, forward_bars, partition_bars
from traceinsight.report.options import ReportOptions
from traceinsight.report.text import clean
from traceinsight.report.tiles import Tile, tiles

_TEMPLATE = "report.html.j2"
_PARTITION, _FORWARD = "Where the", "Communication share of forward"  # how the titles of these sections begin


def render(diagnosis: Diagnosis, options: ReportOptions) -> str:
    """The document that terminal and Markdown draw, with its partition and forward tables drawn as well."""
    document = build(diagnosis, options)
    charts = {
        _PARTITION: partition_bars(diagnosis, all_ranks=options.all_ranks),
        _FORWARD: forward_bars(diagnosis, all_ranks=options.all_ranks),
    }
    return _page(document, charts, tiles(diagnosis))


def draw(document: Document, options: ReportOptions) -> str:  # noqa: ARG001 - the reporters' common shape
    """Any document as a page, with no charts but those it holds."""
    return _page(document, {}, [])


def _page(document: Document, charts: Mapping[str, BarChart | None], numbers: Sequence[Tile]) -> str:
    page = _environment().get_template(_TEMPLATE)
    text = page.render(
        document=document,
        sections=[
            {
                "id": f"section-{number}",
                "title": section.title,
                "cards": _cards(section),
                "chart": next((c for title, c in charts.items() if section.title.startswith(title)), None),
            }
            for number, section in enumerate(document.sections, start=1)
        ],
        tiles=numbers,
    )
    return f"{text.rstrip()}\n"


def _cards(section: Section) -> list[list[Block]]:
    """Blocks that belong together: a numbered paragraph begins a finding, all else stands by itself."""
    cards: list[list[Block]] = [[]]
    for block in section.blocks:
        if isinstance(block, Paragraph) and (block.number is not None or _ends_card(block, cards[-1])):
            cards.append([])
        cards[-1].append(block)
    return [card for card in cards if card]


def _ends_card(block: Paragraph, card: list[Block]) -> bool:
    """A note about all findings ("gains overlap") is no part of the last one."""
    inside = bool(card) and isinstance(card[0], Paragraph) and card[0].number is not None
    return inside and block.indent == 0


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("traceinsight.report", "templates"),
        autoescape=True,  # for every template, whatever its name ends in
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["kind"] = lambda block: type(block).__name__
    return environment


def _finalize(value: object) -> object:
    """Every text on its way into the page loses what is invisible or steers the reader's screen."""
    return clean(value) if isinstance(value, str) and not isinstance(value, Markup) else value
