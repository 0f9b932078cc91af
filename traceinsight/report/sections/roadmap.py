"""The roadmap: what the step time will be after each change, on top of those before it."""

from __future__ import annotations

from collections.abc import Sequence

from traceinsight.base.units import format_count, format_factor, format_ns, format_share
from traceinsight.diagnosis import Diagnosis, Finding, RoadmapEntry
from traceinsight.report.document import Block, Column, Paragraph, Table

_LEGEND = (
    "Numbered as the findings below. Each change is replayed on top of those above it; try others with "
    "traceinsight whatif. speedup = against the line above, in all = against today{examples}; computing = "
    "compute of the median rank / step."
)

_SMALL = "No remedy saves enough when replayed to plan with: expect the small gains that stand below."


def blocks(diagnosis: Diagnosis, findings: Sequence[Finding]) -> tuple[Block, ...]:
    """The table of predicted changes, numbered as the findings are, or why nothing is predicted."""
    predicted = [entry for entry in diagnosis.roadmap if entry.edit is not None]
    replay = diagnosis.replay
    if predicted:
        today_ns = replay.step_ns if replay is not None else None
        return (_table(predicted, [finding.rule for finding in findings], today_ns),)
    if replay is None or replay.predicted:
        small = any(finding.gain is not None and finding.gain.kind == "replayed" for finding in findings)
        return (Paragraph(_SMALL, "muted"),) if small else ()
    return (Paragraph(f"No gain is predicted, only ceilings are given: {replay.reason}.", "muted"),)


def _table(entries: list[RoadmapEntry], rules: list[str], today_ns: int | None) -> Table:
    rated = any(entry.examples_per_s is not None for entry in entries)
    return Table(
        caption="Predicted step time, change after change"
        + (f"; today {format_ns(today_ns)}, from one step's end to the next" if today_ns else ""),
        columns=(
            Column("change", name=True),
            *(Column(name) for name in ("step", "from", "to", "speedup", "in all")),
            *([Column("examples/s")] if rated else []),
            Column("computing"),
        ),
        rows=tuple(_row(entry, rules, rated) for entry in entries),
        legend=_LEGEND.format(examples=", per example" if rated else ""),
        wide_key=True,
    )


def _row(entry: RoadmapEntry, rules: list[str], rated: bool) -> tuple[str, ...]:
    step, speedup, in_all, rate = entry.step_ns, entry.speedup, entry.cumulative_speedup, entry.examples_per_s
    number = f"{rules.index(entry.rule) + 1}. " if entry.rule in rules else ""
    return (
        f"{number}{entry.edit} ({entry.effort}, for {entry.rule})",
        format_ns(step.expected if step else None),
        format_ns(step.low if step else None),
        format_ns(step.high if step else None),
        format_factor(speedup.expected if speedup else None),
        format_factor(in_all.expected if in_all else None),
        *([format_count(round(rate.expected) if rate else None)] if rated else []),
        format_share(entry.compute_share),
    )
