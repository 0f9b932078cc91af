"""Fitting a table to a screen without ever cutting a number.

A table that is too wide puts a long first column on a line of its own, and then continues with the columns
that do not fit in a further table below.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from traceinsight.report.document import Column, Table
from traceinsight.report.text import clean

_GAPS = (2, 1)  # the wider one when all columns fit with it
_MIN_NAME_WIDTH = 16
_MAX_LABEL_WIDTH = 24
_HEADING_INDENT = Column("")
_HEADING_INDENT_WIDTH = 1


@dataclass(frozen=True, slots=True)
class PlacedColumn:
    """A column with its width on the screen. ``left`` columns are names and may wrap."""

    header: str
    width: int
    left: bool


@dataclass(frozen=True, slots=True)
class PlacedRow:
    """Cells beside each other, under a ``heading`` when the first column stands on a line of its own."""

    heading: str | None
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """One table as it is drawn: its lines take at most the width it was laid out for."""

    columns: tuple[PlacedColumn, ...]
    rows: tuple[PlacedRow, ...]
    gap: int


def lay_out(table: Table, width: int) -> list[Layout]:
    """The table, or the tables below each other, that show all of it within ``width`` columns."""
    columns, rows = table.columns, [tuple(clean(cell) for cell in row) for row in table.rows]
    natural = [_natural(column, [row[i] for row in rows]) for i, column in enumerate(columns)]
    # A first column is short unless a trace put something into it; then it wraps rather than cut numbers.
    columns = tuple(
        Column(c.header, name=c.name or one > _MAX_LABEL_WIDTH)
        for c, one in zip(columns, natural, strict=True)
    )
    headings: list[str | None] = [None] * len(rows)
    if table.wide_key and _total(natural, _GAPS[0]) > width:
        headings = [row[0] for row in rows]
        columns = (_HEADING_INDENT, *columns[1:])
        natural[0] = _HEADING_INDENT_WIDTH
        rows = [("", *row[1:]) for row in rows]
    least = [min(one, _MIN_NAME_WIDTH) if c.name else one for c, one in zip(columns, natural, strict=True)]
    gap = next((gap for gap in _GAPS if _total(least, gap) <= width), _GAPS[0])
    layouts = []
    for group in _groups(least, width, gap):
        widths = _squeeze([columns[i] for i in group], [natural[i] for i in group], width, gap)
        placed = tuple(
            PlacedColumn(columns[i].header, one, left=columns[i].name or i == 0)
            for i, one in zip(group, widths, strict=True)
        )
        cells = (tuple(row[i] for i in group) for row in rows)
        placed_rows = tuple(PlacedRow(*pair) for pair in zip(headings, cells, strict=True))
        layouts.append(Layout(placed, placed_rows, gap))
    return layouts


def _natural(column: Column, cells: Sequence[str]) -> int:
    return max([cell_len(column.header), *map(cell_len, cells)])


def _total(widths: Sequence[int], gap: int) -> int:
    return sum(widths) + gap * (len(widths) - 1)


def _groups(least: Sequence[int], width: int, gap: int) -> list[list[int]]:
    """Column indices per table; the first column is repeated in each, so that rows can be told apart."""
    groups: list[list[int]] = [[0]]
    for index in range(1, len(least)):
        fits = _total([least[i] for i in [*groups[-1], index]], gap) <= width
        if not fits and len(groups[-1]) > 1:
            groups.append([0])
        groups[-1].append(index)
    return groups


def _squeeze(columns: Sequence[Column], natural: Sequence[int], width: int, gap: int) -> list[int]:
    """Names give way, numbers do not."""
    widths = list(natural)
    over = _total(widths, gap) - width
    for i, column in enumerate(columns):
        if over > 0 and column.name:
            taken = min(over, max(0, widths[i] - _MIN_NAME_WIDTH))
            widths[i] -= taken
            over -= taken
    return widths
