"""What a report says, apart from how it looks: sections of paragraphs, facts and tables.

Terminal and Markdown draw the same document, so that both name the same denominators. All text in it is
still untrusted; the format that draws it cleans and escapes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Tone = Literal["plain", "strong", "muted", "good", "minor", "major", "critical"]


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A sentence or more. ``number`` stands before it, and begins something new; ``indent`` counts levels."""

    text: str
    tone: Tone = "plain"
    indent: int = 0
    number: int | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """Names and what is said of each; read line by line."""

    rows: tuple[tuple[str, str], ...]
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Bullets:
    """Short lines of equal rank."""

    lines: tuple[str, ...]
    indent: int = 0


@dataclass(frozen=True, slots=True)
class Column:
    """A table column. ``name`` columns hold names out of traces: left-aligned, wrapped, shown as code."""

    header: str
    name: bool = False


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of ready-made cells; the first column names the row.

    ``caption`` stands above and says what every percentage is a share of; ``legend`` stands below and says
    what the columns mean. ``wide_key``: the first column is too long to stand beside numbers on a narrow
    screen.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    legend: str = ""
    wide_key: bool = False


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: filled up to ``share`` of the full width (0..1), its track drawn up to ``reach``."""

    label: str
    share: float
    reach: float
    text: str


@dataclass(frozen=True, slots=True)
class Bars:
    """A chart of horizontal bars below each other; ``text`` stands beside each and holds its number."""

    caption: str
    rows: tuple[Bar, ...]
    legend: str = ""


Block = Paragraph | Facts | Bullets | Table | Bars


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it. ``detail`` marks what a short report folds away."""

    title: str
    blocks: tuple[Block, ...]
    detail: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """The whole report; ``verdict`` is its first line, ``basis`` says how much data it rests on."""

    verdict: str
    basis: str
    sections: tuple[Section, ...]
    footer: str
