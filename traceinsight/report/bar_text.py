"""A chart of bars in plain text, for a terminal and for Markdown."""

from __future__ import annotations

from rich.cells import cell_len

from traceinsight.report.document import Bars
from traceinsight.report.text import clean

_FULL, _TRACK = "█", "·"
_MOST_LABEL = 24
_LEAST_BAR = 10


def bar_lines(block: Bars, width: int) -> list[str]:
    """One line per bar, ``width`` columns at most: label, bar, text."""
    rows = [(clean(row.label, _MOST_LABEL), row, clean(row.text)) for row in block.rows]
    labels = max((cell_len(label) for label, _, _ in rows), default=0)
    texts = max((cell_len(text) for _, _, text in rows), default=0)
    room = max(width - labels - texts - 2, _LEAST_BAR)
    lines = []
    for label, row, text in rows:
        filled, reach = (min(max(round(part * room), 0), room) for part in (row.share, row.reach))
        filled = max(filled, 1) if row.share > 0 else 0
        bar = (_FULL * filled + _TRACK * max(reach - filled, 0)).ljust(room)
        lines.append(f"{' ' * (labels - cell_len(label))}{label} {bar} {text}".rstrip())
    return lines
