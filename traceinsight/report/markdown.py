"""The report as GitHub-flavoured Markdown, short enough for a comment on a pull request."""

from __future__ import annotations

import re
from functools import singledispatch

from traceinsight.diagnosis import Diagnosis
from traceinsight.report.build import build
from traceinsight.report.document import Block, Bullets, Column, Facts, Paragraph, Section, Table
from traceinsight.report.options import ReportOptions
from traceinsight.report.text import clean

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~!&$])")


def render(diagnosis: Diagnosis, options: ReportOptions) -> str:
    """The verdict in bold, what to do in full, the evidence folded."""
    document = build(diagnosis, options)
    parts = [f"**{escape(document.verdict)}**"]
    parts += [_section(section) for section in document.sections]
    parts.append(f"<sub>{escape(document.footer)}</sub>")
    return "\n\n".join(parts) + "\n"


def escape(text: str) -> str:
    """Visible text that means nothing to Markdown, HTML or GitHub (mentions, automatic links)."""
    escaped = _SPECIAL.sub(r"\\\1", clean(text))
    escaped = escaped.replace("\\<", "&lt;").replace("\\>", "&gt;").replace("\\&", "&amp;")
    # "@name" notifies a stranger even when escaped; the full-width sign looks alike and does not.
    escaped = escaped.replace("@", "\uff20").replace("://", "&#58;//").replace("www.", "www&#46;")
    return re.sub(r"^(\d+)([.)])", r"\1\\\2", re.sub(r"^([-+=])", r"\\\1", escaped))


def code(text: str) -> str:
    """A name as a code span, safe inside a table cell."""
    return f"`{clean(text).replace('`', chr(39)).replace('|', '¦') or ' '}`"


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
    text = escape(block.text)
    if block.tone == "muted":
        return f"_{text}_" if text else ""
    return f"**{text}**" if block.tone != "plain" and block.tone != "good" else text


@_draw.register
def _(block: Facts) -> str:
    lines = []
    for label, text in block.rows:
        lines.append(f"- **{escape(label)}:** {escape(text)}" if label else f"- {escape(text)}")
    return "\n".join(lines)


@_draw.register
def _(block: Bullets) -> str:
    return "\n".join(f"- {escape(line)}" for line in block.lines)


@_draw.register
def _(block: Table) -> str:
    header = " | ".join(escape(column.header) for column in block.columns)
    marks = " | ".join(":--" if i == 0 or column.name else "--:" for i, column in enumerate(block.columns))
    lines = [f"| {' | '.join(map(_cell, block.columns, row))} |" for row in block.rows]
    return "\n".join([f"_{escape(block.caption)}_", "", f"| {header} |", f"| {marks} |", *lines])


def _cell(column: Column, text: str) -> str:
    return code(text) if column.name and text else escape(text)
