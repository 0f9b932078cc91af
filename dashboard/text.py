"""From untrusted text to what a browser or plotly may be given.

Names of kernels, annotations and files are whatever a job wrote. Streamlit's Markdown would interpret them,
so prose goes out as HTML that is escaped here; plotly interprets a few tags, so its labels are escaped too.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

from traceinsight.report.document import Bars, Block, Bullets, Facts, Paragraph, Table
from traceinsight.report.text import NAME_LIMIT, clean


def escape(text: str) -> str:
    """Visible characters only, none of which mean anything in HTML."""
    return html.escape(clean(text))


def label(text: str, limit: int = 40) -> str:
    """A name on an axis or in a hover text."""
    return html.escape(clean(text, limit))


def name(text: str | None) -> str:
    """A name in a table, which shows text as text and needs no escaping."""
    return clean(text, NAME_LIMIT) if text else ""


def headline(verdict: str, *, large: bool = True) -> str:
    """A verdict: its first clause, the largest loss, in large type; the rest below it."""
    first, part, rest = verdict.partition("; ")
    size = "" if large else ' class="small"'
    below = f'<span class="rest">{escape(rest)}</span>' if part else ""
    return f"<h1{size}>{escape(first)}{escape(part)}{below}</h1>"


def paragraph(text: str, tone: str = "plain") -> str:
    """One paragraph; ``tone`` is a class of ``theme.css``."""
    return f'<p class="{tone}">{escape(text)}</p>'


def facts(rows: Iterable[tuple[str, str]]) -> str:
    """Names and what is said of each."""
    return f"<dl>{''.join(f'<dt>{escape(term)}</dt><dd>{escape(text)}</dd>' for term, text in rows)}</dl>"


def tile(title: str, value: str, note: str) -> str:
    """One number with its unit and what it is a number of."""
    head = f'<span class="strong">{escape(title)}</span><b>{escape(value)}</b>'
    return f'<div class="tile">{head}{escape(note)}</div>'


def block(one: Block) -> str:
    """A block of the document that every report draws. Tables and bars are data here, not text."""
    if isinstance(one, Paragraph):
        return paragraph(one.text, one.tone)
    if isinstance(one, Facts):
        return facts(one.rows)
    if isinstance(one, Bullets):
        return f"<ul>{''.join(f'<li>{escape(line)}</li>' for line in one.lines)}</ul>"
    assert isinstance(one, Bars | Table)
    return ""


def page(*pieces: str) -> str:
    """Pieces made by this module, under the class that ``theme.css`` styles."""
    return f'<div class="ti">{"".join(pieces)}</div>'
