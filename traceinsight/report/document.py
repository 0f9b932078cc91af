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
    """A sentence or more. ``indent`` counts levels."""

    text: str
    tone: Tone = "plain"
    indent: int = 0


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

    ``caption`` says what the numbers are and what every percentage is a share of. ``wide_key``: the first
    column is too long to stand beside numbers on a narrow screen.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    wide_key: bool = False


Block = Paragraph | Facts | Bullets | Table


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what stands under it. ``detail`` marks what a short report folds away."""

    title: str
    blocks: tuple[Block, ...]
    detail: bool = False


@dataclass(frozen=True, slots=True)
class Document:
    """The whole report; ``verdict`` is its first line."""

    verdict: str
    sections: tuple[Section, ...]
    footer: str
