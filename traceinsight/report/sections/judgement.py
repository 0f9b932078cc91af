"""What could not be judged and how to make it judgeable; what was judged and found in order."""

from __future__ import annotations

from traceinsight.diagnosis import Diagnosis
from traceinsight.report.document import Block, Bullets, Facts, Paragraph, Section


def not_judged(diagnosis: Diagnosis) -> Section:
    """Questions without an answer; never folded away, because silence reads as "healthy"."""
    if not diagnosis.not_judged:
        return Section("Not judged", (Paragraph("Nothing: every rule had the data it needs."),))
    blocks: list[Block] = []
    for one in diagnosis.not_judged:
        blocks += [
            Paragraph(one.rule, "strong"),
            Facts((("Why", _sentence(one.reason)), ("To judge", one.capture_hint)), indent=1),
        ]
    return Section("Not judged", tuple(blocks))


def in_order(diagnosis: Diagnosis) -> Section | None:
    """Rules that looked and found nothing, with the number they looked at."""
    if not diagnosis.clean:
        return None
    lines = tuple(f"{rule.rule}: {rule.summary}" for rule in diagnosis.clean)
    return Section("Checked and in order", (Bullets(lines),), detail=True)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"
