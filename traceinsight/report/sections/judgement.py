"""What could not be judged and how to make it judgeable; what was judged and found in order."""

from __future__ import annotations

from collections import defaultdict

from traceinsight.diagnosis import Diagnosis
from traceinsight.report.document import Block, Bullets, Facts, Paragraph, Section


def not_judged(diagnosis: Diagnosis) -> Section:
    """Questions without an answer; never folded away, because silence reads as "healthy"."""
    if not diagnosis.not_judged:
        return Section("Not judged", (Paragraph("Nothing: every rule had the data it needs."),))
    rules: dict[tuple[str, str], list[str]] = defaultdict(list)
    for one in diagnosis.not_judged:
        rules[one.reason, one.capture_hint].append(one.rule)
    blocks: list[Block] = []
    for (reason, hint), names in rules.items():
        blocks += [
            Paragraph(", ".join(names), "strong"),
            Facts((("Why", _sentence(reason)), ("To judge", hint)), indent=1),
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
