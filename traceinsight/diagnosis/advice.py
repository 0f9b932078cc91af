"""What follows from the measurements: findings, their gains, and what could not be judged."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from traceinsight.diagnosis.measurements import NanosecondRange
from traceinsight.diagnosis.run import Struct


class Interval(Struct, frozen=True):
    """An interval with its best estimate; the unit is that of the field that holds it."""

    low: float
    expected: float
    high: float


class Evidence(Struct, frozen=True):
    """One number a finding rests on. ``where`` names its place and its denominator."""

    metric: str
    value: float
    unit: str  # ns, share, bytes, GB/s, count, ratio
    where: str


class Gain(Struct, frozen=True):
    """What the remedy would bring per step. A ceiling is the time that would vanish at best.

    A replayed gain is what the step would be shorter by, since other work takes over part of what vanishes;
    ``ceiling_ns`` then keeps the expected ceiling. ``speedup`` is step time now / step time then. Gains of
    different findings overlap: never add them.
    """

    kind: Literal["ceiling", "replayed"]
    step_ns: NanosecondRange
    speedup: Interval
    ceiling_ns: int | None = None  # what would vanish at best, beside a replayed gain
    edit: str | None = None  # the edit that was replayed, alone; null for a ceiling


class Finding(Struct, frozen=True):
    """One bottleneck with its evidence and its remedy.

    ``edits``: how the remedy is written as an edit of the replay (``qcomms=fp8``), alternatives in order of
    preference; empty where no edit models it. A replayed ``gain`` is that of the best of them, alone.
    """

    rule: str
    severity: Literal["critical", "major", "minor"]
    confidence: Literal["low", "medium", "high"]
    title: str
    ranks: list[int]
    evidence: list[Evidence]
    gain: Gain | None
    action: str
    quality_risk: str
    edits: list[str] = msgspec.field(default_factory=list)  # remedies as `whatif --edit` takes them


class RoadmapEntry(Struct, frozen=True):
    """One change, in the order to apply; each is predicted on top of those before it.

    ``edit`` and the numbers are None where the remedy of ``rule`` cannot be replayed. ``step_ns`` is the
    step time with this change and all before it; ``speedup`` the time per example before it over that after
    it, ``cumulative_speedup`` today's over that. ``examples_per_s`` is over all ranks, None where the
    manifest does not give the batch. ``compute_share``: compute time of the median rank / step time after
    it, which is 1 when no device ever waits.
    """

    rule: str
    edit: str | None = None  # the change as `whatif --edit` takes it
    effort: str | None = None  # setting, placement, model, parallelism
    step_ns: NanosecondRange | None = None  # predicted step time
    speedup: Interval | None = None  # against the entry before
    cumulative_speedup: Interval | None = None  # against today
    examples_per_s: Interval | None = None  # predicted, over all ranks
    compute_share: float | None = None  # of the predicted step in which the median rank computes


def in_roadmap_order(findings: Sequence[Finding], roadmap: Sequence[RoadmapEntry]) -> list[Finding]:
    """Findings as the roadmap orders their rules; those it does not name last, as they came."""
    place: dict[str, int] = {}
    for at, entry in enumerate(roadmap):
        place.setdefault(entry.rule, at)
    return sorted(findings, key=lambda finding: place.get(finding.rule, len(place)))


class NotJudged(Struct, frozen=True):
    """A question the data could not answer, and the capture setting that would answer it."""

    rule: str
    reason: str
    capture_hint: str


class CleanRule(Struct, frozen=True):
    """A rule that looked and found nothing: which number stayed below which threshold."""

    rule: str
    summary: str
