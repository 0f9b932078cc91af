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

_GAP = 2
_MIN_NAME_WIDTH = 16
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
    gap: int = _GAP


def lay_out(table: Table, width: int) -> list[Layout]:
    """The table, or the tables below each other, that show all of it within ``width`` columns."""
    columns, rows = table.columns, [tuple(clean(cell) for cell in row) for row in table.rows]
    natural = [_natural(column, [row[i] for row in rows]) for i, column in enumerate(columns)]
    headings: list[str | None] = [None] * len(rows)
    if table.wide_key and _total(natural) > width:
        headings = [row[0] for row in rows]
        columns = (_HEADING_INDENT, *columns[1:])
        natural[0] = _HEADING_INDENT_WIDTH
        rows = [("", *row[1:]) for row in rows]
    layouts = []
    for group in _groups(columns, natural, width):
        widths = _squeeze([columns[i] for i in group], [natural[i] for i in group], width)
        placed = tuple(
            PlacedColumn(columns[i].header, one, left=columns[i].name or i == 0)
            for i, one in zip(group, widths, strict=True)
        )
        cells = (tuple(row[i] for i in group) for row in rows)
        layouts.append(Layout(placed, tuple(PlacedRow(*pair) for pair in zip(headings, cells, strict=True))))
    return layouts


def _natural(column: Column, cells: Sequence[str]) -> int:
    return max(cell_len(column.header), *(cell_len(cell) for cell in cells), 0)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + _GAP * (len(widths) - 1)


def _groups(columns: Sequence[Column], natural: Sequence[int], width: int) -> list[list[int]]:
    """Column indices per table; the first column is repeated in each, so that rows can be told apart."""
    least = [min(one, _MIN_NAME_WIDTH) if c.name else one for c, one in zip(columns, natural, strict=True)]
    groups: list[list[int]] = [[0]]
    for index in range(1, len(columns)):
        fits = _total([least[i] for i in [*groups[-1], index]]) <= width
        if not fits and len(groups[-1]) > 1:
            groups.append([0])
        groups[-1].append(index)
    return groups


def _squeeze(columns: Sequence[Column], natural: Sequence[int], width: int) -> list[int]:
    """Names give way, numbers do not."""
    widths = list(natural)
    over = _total(widths) - width
    for i in sorted(range(len(columns)), key=lambda i: -widths[i]):
        if over > 0 and columns[i].name:
            taken = min(over, max(0, widths[i] - _MIN_NAME_WIDTH))
            widths[i] -= taken
            over -= taken
    return widths
