"""What a rule is, and the outcomes it may have."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from traceinsight.advice.measurements import Measurements
from traceinsight.diagnosis import Evidence, Finding, Gain, Interval, NanosecondRange

CRITICAL_SHARE = 0.25
"""From a quarter of the step on nothing else is worth doing first."""

MAJOR_SHARE = 0.10
"""From a tenth of the step on it is worth an engineer's week."""


@dataclass(frozen=True, slots=True)
class Found:
    """The rule detected its problem."""

    findings: Sequence[Finding]


@dataclass(frozen=True, slots=True)
class Clean:
    """The rule looked and found nothing; ``summary`` gives the number and the threshold."""

    summary: str


@dataclass(frozen=True, slots=True)
class Borderline:
    """The rule's own measure is below its threshold, but a remedy may gain more than that measure shows.

    ``finding`` stands where replay says so (``roadmap.WORTH_SHARE``); else the rule is ``otherwise``.
    """

    finding: Finding
    otherwise: Clean


@dataclass(frozen=True, slots=True)
class NotApplicable:
    """The rule could not look; ``capture_hint`` says which capture setting would let it."""

    reason: str
    capture_hint: str


Outcome = Found | Borderline | Clean | NotApplicable


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule: ``id`` is kebab-case and named after the problem; ``judge`` never raises on odd data.

    ``remedied_by`` names rules that find the cause of the same loss: where one of them speaks, this rule's
    finding stays, as the size of the loss, and the change to make is theirs.
    """

    id: str
    summary: str
    judge: Callable[[Measurements], Outcome]
    remedied_by: tuple[str, ...] = ()


def severity_of(share: float) -> Literal["critical", "major", "minor"]:
    """Severity from the share of the step that is at stake."""
    if share >= CRITICAL_SHARE:
        return "critical"
    return "major" if share >= MAJOR_SHARE else "minor"


def ceiling(step_ns: float, freed: NanosecondRange) -> Gain:
    """The gain if ``freed`` vanished from every step. An upper bound: other work may take its place."""

    def speedup(freed_ns: int) -> float:
        left = max(step_ns - freed_ns, 0.05 * step_ns)  # no ceiling promises more than 20 times
        return step_ns / left if left else 1.0

    return Gain(
        kind="ceiling",
        step_ns=freed,
        speedup=Interval(low=speedup(freed.low), expected=speedup(freed.expected), high=speedup(freed.high)),
    )


def share_evidence(metric: str, share: float, where: str) -> Evidence:
    """A share of the step window, with its denominator in ``where``."""
    return Evidence(metric=metric, value=share, unit="share", where=where)


def percent(share: float) -> str:
    """For titles: whole percent, one decimal below ten; what is there but tiny is not called zero."""
    if 0 < share < 0.0005:
        return "<0.1%"
    return f"{share:.0%}" if share >= 0.0995 else f"{share:.1%}"


def lower_first(text: str) -> str:
    """A sentence as the later part of another one."""
    return text[:1].lower() + text[1:]
