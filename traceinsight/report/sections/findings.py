"""What to change next: findings in the order of the roadmap."""

from __future__ import annotations

from collections.abc import Callable

from traceinsight.base.units import (
    format_bytes,
    format_count,
    format_factor,
    format_gbps,
    format_ns,
    format_ranks,
    format_share,
)
from traceinsight.diagnosis import Diagnosis, Evidence, Finding, Gain, in_roadmap_order, typical_step_ns
from traceinsight.report.document import Block, Facts, Paragraph, Section
from traceinsight.report.sections import roadmap

_FORMATS: dict[str, Callable[[float | None], str]] = {
    "ns": format_ns,
    "share": format_share,
    "bytes": format_bytes,
    "GB/s": format_gbps,
    "count": format_count,
    "ratio": format_factor,
}
_RANKS_SHOWN = 8

MUCH_LESS = 0.75
"""A replayed gain below this share of its ceiling needs a word on where the rest goes."""

MUCH_MORE = 1.25
"""And one above this share a word on where it comes from: a ceiling is the loss as measured by itself."""


def section(diagnosis: Diagnosis) -> Section:
    """Each finding with what to do, what it brings, what it risks and why it is believed."""
    findings = in_roadmap_order(diagnosis.findings, diagnosis.roadmap)
    if not findings:
        return Section("What to change next", (Paragraph(_nothing(diagnosis), "good"),))
    step_ns = typical_step_ns(diagnosis.partition)
    replayed_ns = diagnosis.replay.step_ns if diagnosis.replay is not None else None
    blocks: list[Block] = list(roadmap.blocks(diagnosis, findings))
    for number, finding in enumerate(findings, start=1):
        blocks += _finding(number, finding, step_ns, replayed_ns, len(diagnosis.run.ranks))
    if sum(finding.gain is not None for finding in findings) > 1:
        blocks.append(
            Paragraph(
                "Gains overlap, so they do not add up: apply the first, capture again, compare.", "muted"
            )
        )
    return Section("What to change next", tuple(blocks))


def _nothing(diagnosis: Diagnosis) -> str:
    if diagnosis.not_judged:
        return "Nothing in what could be judged; see Not judged for the rest."
    return "Nothing: no rule found a bottleneck in these steps."


def _finding(
    number: int, finding: Finding, step_ns: float | None, replayed_ns: float | None, captured: int
) -> list[Block]:
    ranks = "all ranks" if len(finding.ranks) == captured > 1 else _ranks(finding.ranks)
    about = f"{finding.severity} · {finding.confidence} confidence · {ranks} · rule {finding.rule}"
    because = tuple(("Because" if i == 0 else "", evidence_line(e)) for i, e in enumerate(finding.evidence))
    return [
        Paragraph(finding.title, finding.severity, number=number),
        Paragraph(about, "muted", indent=1),
        Facts(
            (
                ("Do", finding.action),
                ("Gain", gain_line(finding.gain, step_ns, replayed_ns)),
                ("Risk", finding.quality_risk),
                *because,
            ),
            indent=1,
        ),
    ]


def _ranks(ranks: list[int]) -> str:
    if not ranks:
        return "no rank named"
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {format_ranks(ranks, max_parts=_RANKS_SHOWN)}"


def gain_line(gain: Gain | None, step_ns: float | None, replayed_ns: float | None = None) -> str:
    """The gain per step with its denominator; a ceiling is never worded as a promise.

    ``step_ns``: the median window, of which a ceiling is a part; ``replayed_ns``: the step from end to end,
    of which a replayed gain is one.
    """
    if gain is None:
        return "not predicted"
    step_ns = (replayed_ns or step_ns) if gain.kind == "replayed" else step_ns
    size = format_ns(gain.step_ns.expected)
    if step_ns:
        size += f" of the {format_ns(step_ns)} step ({format_share(gain.step_ns.expected / step_ns)} of it)"
    else:
        size += " per step"
    between = f"{format_ns(gain.step_ns.low)} to {format_ns(gain.step_ns.high)}"
    factor = format_factor(gain.speedup.expected)
    if gain.kind == "ceiling":
        spread = f"; {between} over ranks" if gain.step_ns.high > gain.step_ns.expected else ""
        return f"at most {size}, so {factor} as fast at best (ceiling{spread})"
    low, high = format_factor(gain.speedup.low), format_factor(gain.speedup.high)
    said = f"{size}, {between}; {factor} as fast, {low} to {high} (replayed)"
    return said + _beside_ceiling(gain)


def _beside_ceiling(gain: Gain) -> str:
    if gain.ceiling_ns is None or gain.step_ns.expected <= 0:
        return ""
    if gain.step_ns.expected < MUCH_LESS * gain.ceiling_ns:
        return f". Of {format_ns(gain.ceiling_ns)} that would vanish, other work takes over the rest"
    if gain.step_ns.expected > MUCH_MORE * gain.ceiling_ns:
        return (
            f". More than the {format_ns(gain.ceiling_ns)} measured: what waits behind it starts earlier, too"
        )
    return ""


def evidence_line(evidence: Evidence) -> str:
    """``lateness: 35.0 ms behind the last of the other ranks``. An unknown unit is written out."""
    form = _FORMATS.get(evidence.unit)
    value = form(evidence.value) if form else f"{format_count(evidence.value)} {evidence.unit}"
    return f"{_metric(evidence.metric)}: {value} {evidence.where}"


def _metric(name: str) -> str:
    """``imbalance_sent_bytes_per_step`` -> ``imbalance of sent bytes``: the unit stands with the value."""
    words = name.replace("all_to_all", "all-to-all").replace("_", " ")
    about = words.removeprefix("imbalance ")
    if about == words:
        return words
    return f"imbalance of {about.removesuffix(' per step').replace(' ns', ' time')}"
