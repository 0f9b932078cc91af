"""Who arrives last at the collectives, by how much, and why."""

from __future__ import annotations

from traceinsight.base.units import format_ns, format_ranks, format_share
from traceinsight.diagnosis import Diagnosis, Straggler, typical_step_ns
from traceinsight.report.document import Block, Facts, Paragraph, Section

_RANKS_SHOWN = 16


def section(diagnosis: Diagnosis) -> Section:
    """One block per group of ranks that are late together."""
    if not diagnosis.stragglers:
        return Section("Stragglers", (Paragraph(_none(diagnosis)),), detail=True)
    step_ns = typical_step_ns(diagnosis.partition)
    blocks: list[Block] = []
    for straggler in diagnosis.stragglers:
        blocks += _straggler(straggler, step_ns)
    return Section("Stragglers", tuple(blocks), detail=True)


def _none(diagnosis: Diagnosis) -> str:
    reasons = [one.reason for one in diagnosis.not_judged if one.rule == "straggler"]
    if reasons:
        return f"Not judged: {reasons[0]}."
    return "None established: no rank came late often enough, beyond the clock error, to cost step time."


def _straggler(straggler: Straggler, step_ns: float | None) -> list[Block]:
    many = len(straggler.ranks) > 1
    ranks = format_ranks(straggler.ranks, max_parts=_RANKS_SHOWN)
    late = straggler.lateness_ns
    title = f"{'Ranks' if many else 'Rank'} {ranks}: {format_ns(late.expected)} late when last to arrive"
    of_step = f" ({format_share(straggler.ceiling_ns / step_ns)} of the step)" if step_ns else ""
    cause = straggler.cause.replace("_", " ")
    facts = (
        (
            "Late by",
            f"{format_ns(late.expected)} behind the last of the other ranks (interval {format_ns(late.low)} "
            f"to {format_ns(late.high)}); {format_ns(straggler.behind_median_ns)} behind the median rank",
        ),
        (
            "How often",
            f"{straggler.steps_late} of {straggler.steps_judged} steps ({_persistence(straggler)}); last at "
            f"{format_share(straggler.last_share)} of the collectives all ranks meet at",
        ),
        ("Cause", f"{cause} ({straggler.confidence} confidence). {straggler.detail}"),
        (
            "Frees",
            f"at most {format_ns(straggler.ceiling_ns)} per step{of_step} if {'they' if many else 'it'} came "
            "with the next rank (ceiling)",
        ),
    )
    return [Paragraph(title, "strong"), Facts(facts, indent=1)]


def _persistence(straggler: Straggler) -> str:
    if straggler.persistence == "unknown":
        return "too few to say whether it persists"
    return straggler.persistence
