"""The first sentence a user reads: what the devices wait for, with its number."""

from __future__ import annotations

from collections.abc import Sequence

from traceinsight.advice.measurements import Measurements
from traceinsight.advice.rule import lower_first, percent
from traceinsight.base.statistics import median
from traceinsight.diagnosis import Finding

FLOOR_SHARE = 0.05
"""Findings start at this share of a step (some at more); below it the tool stays silent."""


def verdict_of(measurements: Measurements, findings: Sequence[Finding]) -> str:
    """One sentence: the largest finding and how much of the step computes, or why nothing was found.

    What the capture hides comes first where it is more than any finding costs.
    """
    if not measurements.partition:
        reason = findings[0].title if findings else "no step with device activity was recorded"
        return f"The bottleneck cannot be judged: {lower_first(reason)}."
    if measurements.step_ns <= 0:
        return "The bottleneck cannot be judged: most steps have no length, so durations are missing."
    with_gain = [finding for finding in findings if finding.gain is not None]
    compute = _computing(measurements)
    hiding = [finding for finding in findings if finding.gain is None]
    if with_gain and hiding and _hidden_share(hiding[0]) > max(map(_gain_share, with_gain)):
        return f"{hiding[0].title}; in the rest: {lower_first(with_gain[0].title)}; {compute}."
    if with_gain:
        then = f"; then: {lower_first(with_gain[1].title)}" if len(with_gain) > 1 else ""
        return f"{with_gain[0].title}{then}; {compute}."
    if findings:
        return f"{findings[0].title}; {compute}, and no bottleneck was found in the rest."
    return f"Healthy: no bottleneck found above {percent(FLOOR_SHARE)} of the step; {compute}."


def _hidden_share(finding: Finding) -> float:
    """The largest share of the step that a finding about the capture leaves open; 0 where it names none."""
    return max((one.value for one in finding.evidence if one.unit == "share"), default=0.0)


def _gain_share(finding: Finding) -> float:
    """Share of the step that would vanish at best; 0 where nothing is known to."""
    return 0.0 if finding.gain is None else 1.0 - 1.0 / finding.gain.speedup.expected


def _computing(measurements: Measurements) -> str:
    shares = [row.compute_ns / row.window_ns for row in measurements.partition if row.window_ns]
    share = median(shares) if shares else 0.0
    word = measurements.device_word
    return f"the {word}s compute {percent(share)} of the step (median over ranks and steps)"
