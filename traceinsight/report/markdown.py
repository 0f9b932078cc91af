"""The report as GitHub-flavoured Markdown, short enough for a comment on a pull request."""

from __future__ import annotations

import re
from functools import singledispatch

from traceinsight.diagnosis import Diagnosis
from traceinsight.report.bar_text import bar_lines
from traceinsight.report.build import build
from traceinsight.report.document import (
    Bars,
    Block,
    Bullets,
    Column,
    Document,
    Facts,
    Paragraph,
    Section,
    Table,
)
from traceinsight.report.options import ReportOptions
from traceinsight.report.text import clean

_BARS_WIDTH = 78
_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&$])")


def render(diagnosis: Diagnosis, options: ReportOptions) -> str:
    """The verdict in bold, what to do in full, the evidence folded."""
    return draw(build(diagnosis, options), options)


def draw(document: Document, options: ReportOptions) -> str:  # noqa: ARG001 - the reporters' common shape
    """Any document as Markdown."""
    parts = [f"**{escape(document.verdict)}**", _line(document.basis)]
    parts += [_section(section) for section in document.sections]
    parts.append(f"<sub>{escape(document.footer)}</sub>")
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Visible text that means nothing to Markdown, HTML or GitHub (mentions, automatic links)."""
    escaped = _SPECIAL.sub(r"\\\1", clean(text))
    escaped = escaped.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\&", "&amp;")
    # "@name" notifies a stranger even when escaped; the full-width sign looks alike and does not.
    return escaped.replace("@", "\uff20").replace("://", "&#58;//").replace("www.", "www&#46;")


def _line(text: str) -> str:
    """Escaped text at the begin of a line, where a number or a dash would open a list."""
    return re.sub(r"^([-+=]|\d+(?=[.)](?:\s|$)))", _escaped_mark, escape(text))


def _escaped_mark(found: re.Match[str]) -> str:
    return f"{found[1]}\\" if found[1].isdigit() else f"\\{found[1]}"


def code(text: str) -> str:
    """A name as a code span inside a table cell, where even code needs its pipes escaped."""
    inside = clean(text).replace("`", "'").replace("|", "\\|")
    return f"`{inside}`" if inside else ""


def _section(section: Section) -> str:
    body = "\n\n".join(_draw(block) for block in section.blocks)
    title = escape(section.title)
    if section.detail:
        return f"<details><summary>{title}</summary>\n\n{body}\n\n</details>"
    return f"### {title}\n\n{body}"


@singledispatch
def _draw(block: Block) -> str:
    raise TypeError(f"no drawing for {type(block).__name__}")


@_draw.register
def _(block: Paragraph) -> str:
    text = _line(block.text) if block.number is None else f"{block.number}. {escape(block.text)}"
    if block.tone == "muted":
        return f"_{text}_" if text else ""
    return f"**{text}**" if block.tone not in {"plain", "good"} else text


@_draw.register
def _(block: Facts) -> str:
    lines = []
    for label, text in block.rows:
        lines.append(f"- **{escape(label)}:** {escape(text)}" if label else f"- {_line(text)}")
    return "\n".join(lines)


@_draw.register
def _(block: Bullets) -> str:
    return "\n".join(f"- {_line(line)}" for line in block.lines)


@_draw.register
def _(block: Table) -> str:
    header = " | ".join(escape(column.header) for column in block.columns)
    marks = " | ".join(":--" if i == 0 or column.name else "--:" for i, column in enumerate(block.columns))
    lines = [f"| {' | '.join(map(_cell, block.columns, row))} |" for row in block.rows]
    legend = ["", f"<sub>{escape(block.legend)}</sub>"] if block.legend else []
    return "\n".join([f"{_line(block.caption)}:", "", f"| {header} |", f"| {marks} |", *lines, *legend])


@_draw.register
def _(block: Bars) -> str:
    lines = "\n".join(line.replace("`", "'") for line in bar_lines(block, _BARS_WIDTH))
    legend = f"\n\n<sub>{escape(block.legend)}</sub>" if block.legend else ""
    return f"{_line(block.caption)}:\n\n```text\n{lines}\n```{legend}"


def _cell(column: Column, text: str) -> str:
    return code(text) if column.name else escape(text)
