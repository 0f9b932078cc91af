"""What follows from the measurements: findings, their gains, and what could not be judged."""

from __future__ import annotations

from typing import Literal

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

    ``speedup`` is step time now / step time then. Gains of different findings overlap: never add them.
    """

    kind: Literal["ceiling", "replayed"]
    step_ns: NanosecondRange
    speedup: Interval


class Finding(Struct, frozen=True):
    """One bottleneck with its evidence and its remedy."""

    rule: str
    severity: Literal["critical", "major", "minor"]
    confidence: Literal["low", "medium", "high"]
    title: str
    ranks: list[int]
    evidence: list[Evidence]
    gain: Gain | None
    action: str
    quality_risk: str


class RoadmapEntry(Struct, frozen=True):
    """A rule's remedy, in the order to apply."""

    rule: str


class NotJudged(Struct, frozen=True):
    """A question the data could not answer, and the capture setting that would answer it."""

    rule: str
    reason: str
    capture_hint: str


class CleanRule(Struct, frozen=True):
    """A rule that looked and found nothing: which number stayed below which threshold."""

    rule: str
    summary: str
