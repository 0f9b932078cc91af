"""The report for a terminal of any width, with or without colour."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import singledispatchmethod

from rich.cells import cell_len
from rich.console import Console
from rich.padding import Padding
from rich.table import Table as RichTable
from rich.text import Text

from traceinsight.diagnosis import Diagnosis
from traceinsight.report.bar_text import bar_lines
from traceinsight.report.build import build
from traceinsight.report.document import (
    Bars,
    Block,
    Bullets,
    Document,
    Facts,
    Paragraph,
    Section,
    Table,
    Tone,
)
from traceinsight.report.options import ReportOptions
from traceinsight.report.table_layout import Layout, PlacedColumn, lay_out
from traceinsight.report.text import clean

_STYLES = {
    "plain": "",
    "strong": "bold",
    "muted": "dim",
    "good": "green",
    "minor": "bold yellow",
    "major": "bold magenta",
    "critical": "bold red",
}
_READABLE_WIDTH = 100
"""Lines of prose longer than this are hard to follow; tables may use the rest of the screen."""

_INDENT = 3
_LABEL_WIDTH = 9


def render(diagnosis: Diagnosis, options: ReportOptions) -> str:
    """The whole report as text."""
    return draw(build(diagnosis, options), options)


def draw(document: Document, options: ReportOptions) -> str:
    """Any document as text."""
    page = _Page(options)
    page.verdict(document.verdict, document.basis)
    for section in document.sections:
        page.section(section)
    page.footer(document.footer)
    return page.text()


class _Page:
    """Draws blocks into a string. Only ``Text`` objects are printed, so no markup is ever interpreted."""

    def __init__(self, options: ReportOptions) -> None:
        self._buffer = io.StringIO()
        self._width = options.width
        self._prose = min(options.width, _READABLE_WIDTH)
        self._console = Console(
            file=self._buffer,
            width=options.width,
            force_terminal=options.color,
            color_system="standard" if options.color else None,
            no_color=not options.color,
            highlight=False,
            markup=False,
            emoji=False,
            legacy_windows=False,
        )

    def text(self) -> str:
        """What was drawn, without the blanks that padding leaves at the ends of lines."""
        lines = self._buffer.getvalue().splitlines()
        return "\n".join(line.rstrip() for line in lines) + "\n"

    def verdict(self, sentence: str, basis: str) -> None:
        self._print(_styled(sentence, "strong"))
        self._print(_styled(basis, "muted"))

    def section(self, section: Section) -> None:
        title = f"{clean(section.title)} "
        rule = "─" * max(0, self._prose - cell_len(title))
        self._console.print()
        self._console.print(Text.assemble((title, "bold cyan"), (rule, "dim")), no_wrap=True, crop=True)
        for i, block in enumerate(section.blocks):
            numbered = isinstance(block, Paragraph) and block.number is not None
            begins = isinstance(block, Table | Bars) or numbered
            if begins and i:
                self._console.print()
            self.draw(block)

    def footer(self, text: str) -> None:
        self._console.print()
        self._print(_styled(text, "muted"))

    @singledispatchmethod
    def draw(self, block: Block) -> None:
        raise TypeError(f"no drawing for {type(block).__name__}")

    @draw.register
    def _(self, block: Paragraph) -> None:
        text = _styled(block.text, block.tone)
        if block.number is None:
            self._print(text, block.indent)
        else:
            self._hanging(_styled(f"{block.number}.", block.tone), text, block.indent)

    @draw.register
    def _(self, block: Facts) -> None:
        grid = RichTable.grid(padding=(0, 2, 0, 0))
        grid.add_column(width=_LABEL_WIDTH, no_wrap=True)
        grid.add_column(overflow="fold")
        for label, text in block.rows:
            grid.add_row(_styled(label, "muted"), _styled(text, "plain"))
        self._print(grid, block.indent)

    @draw.register
    def _(self, block: Bullets) -> None:
        for line in block.lines:
            self._hanging(Text("-"), _styled(line, "plain"), block.indent)

    @draw.register
    def _(self, block: Table) -> None:
        self._print(_styled(f"{block.caption}:", "plain"))
        for layout in lay_out(block, self._width):
            self._table(layout)
        self._print(_styled(block.legend, "muted"), indent=1)

    @draw.register
    def _(self, block: Bars) -> None:
        self._print(_styled(f"{block.caption}:", "plain"))
        for line in bar_lines(block, self._prose):
            self._console.print(Text(line), no_wrap=True, crop=True)
        self._print(_styled(block.legend, "muted"), indent=1)

    def _table(self, layout: Layout) -> None:
        """Draw every row by itself, so that a heading can span the table between two of them."""
        self._line(layout, [column.header for column in layout.columns], "strong")
        for row in layout.rows:
            if row.heading is not None:
                self._print(_styled(row.heading, "plain"))
            self._line(layout, row.cells, "plain")

    def _line(self, layout: Layout, cells: Sequence[str], tone: Tone) -> None:
        columns = layout.columns
        if all(cell_len(cell) <= column.width for cell, column in zip(cells, columns, strict=True)):
            # A thousand ranks are a thousand lines: a grid for each would take seconds.
            padded = (_aligned(cell, column) for cell, column in zip(cells, columns, strict=True))
            text = (" " * layout.gap).join(padded)
            self._console.print(Text(text, style=_STYLES[tone]), no_wrap=True, crop=True)
            return
        grid = RichTable.grid(padding=(0, layout.gap, 0, 0), pad_edge=False)
        for column in columns:
            grid.add_column(justify="left" if column.left else "right", width=column.width, overflow="fold")
        grid.add_row(*(_styled(cell, tone) for cell in cells))
        self._console.print(grid)

    def _hanging(self, mark: Text, text: Text, indent: int) -> None:
        grid = RichTable.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=cell_len(mark.plain))
        grid.add_column(overflow="fold")
        grid.add_row(mark, text)
        self._print(grid, indent)

    def _print(self, what: Text | RichTable, indent: int = 0) -> None:
        padded = Padding(what, (0, 0, 0, indent * _INDENT))
        self._console.print(padded, width=self._prose)


def _aligned(text: str, column: PlacedColumn) -> str:
    blanks = " " * (column.width - cell_len(text))
    return f"{text}{blanks}" if column.left else f"{blanks}{text}"


def _styled(text: str, tone: Tone) -> Text:
    return Text(clean(text), style=_STYLES[tone], overflow="fold")
