"""Poor capture: what was recorded is too little to judge where the time goes.

Detects
    A device or host side that was not recorded, steps that had to be guessed, or exposed communication
    of at least ``MIN_UNSPLIT_SHARE`` of the step whose peers were not captured.
Why it costs
    The numbers then hold several causes at once, and the wrong one may be mended.
Evidence
    What is missing, and how much of the step it leaves unexplained.
Remedy
    Capture again with the settings named.
How the gain is predicted
    Not at all: a better capture makes nothing faster.
When this is wrong
    When the missing ranks or phases are known to be idle or identical.
"""

from __future__ import annotations

from dataclasses import dataclass

from traceinsight.advice.measurements import Measurements
from traceinsight.advice.rule import Clean, Found, Outcome, Rule, percent, share_evidence
from traceinsight.base.statistics import median
from traceinsight.diagnosis import Evidence, Finding

MIN_UNSPLIT_SHARE = 0.05
"""Share of the step window: as much as a finding needs, so what is hidden there could be one."""

MIN_UNEXPLAINED_SHARE = 0.10
"""Share of the step window; small gaps at the edges of a capture never explain themselves."""


def judge(measurements: Measurements) -> Outcome:
    """One finding that lists all that is missing."""
    problems = [problem for check in _CHECKS if (problem := check(measurements)) is not None]
    problems.sort(key=lambda problem: problem.weight, reverse=True)
    if not problems:
        return Clean("device, host and steps were recorded, and waiting could be told from transfer")
    return Found(
        [
            Finding(
                rule=RULE.id,
                severity="minor",
                confidence="high",
                title=f"Too little was captured to judge everything: {problems[0].what}",
                ranks=list(measurements.run.ranks),
                evidence=[problem.evidence for problem in problems],
                gain=None,
                action=" ".join(problem.hint for problem in problems),
                quality_risk="None: only the capture changes.",
            )
        ]
    )


@dataclass(frozen=True, slots=True)
class _Problem:
    what: str
    hint: str
    evidence: Evidence

    @property
    def weight(self) -> float:
        """What is missing altogether comes before what leaves a share of the step unexplained."""
        return self.evidence.value if self.evidence.unit == "share" else 1.0


def _count(metric: str, value: float, where: str) -> Evidence:
    return Evidence(metric=metric, value=value, unit="count", where=where)


def _no_device(measurements: Measurements) -> _Problem | None:
    recorded = len(measurements.capture.device_recorded)
    if recorded == len(measurements.run.ranks):
        return None
    return _Problem(
        "no usable GPU activity was recorded" if not recorded else "the GPU of some ranks was not recorded",
        "Profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA].",
        _count("ranks_with_device", recorded, f"of {len(measurements.run.ranks)} ranks read"),
    )


def _no_host(measurements: Measurements) -> _Problem | None:
    if measurements.capture.host_recorded:
        return None
    return _Problem(
        "only the GPU side was recorded, so steps, phases and causes are unknown",
        "Profile with activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA].",
        _count("host_events", 0, "CPU operators and annotations recorded"),
    )


def _no_steps(measurements: Measurements) -> _Problem | None:
    if measurements.capture.step_marks:
        return None
    return _Problem(
        f"steps are not marked (found by: {measurements.run.step_source})",
        "Call profiler.step() once per training step.",
        _count("marked_steps", 0, "ProfilerStep annotations recorded"),
    )


def _unsplit(measurements: Measurements) -> _Problem | None:
    if not measurements.partition or not measurements.capture.incomplete_collectives:
        return None  # what does not synchronise cannot be split by any capture
    unsplit = median(list(measurements.per_rank(lambda row: row.exposed_comm_unsplit_ns).values()))
    share = measurements.share(unsplit)
    if share < MIN_UNSPLIT_SHARE:
        return None
    absent = len(measurements.run.missing_ranks)
    return _Problem(
        f"{percent(share)} of the step is exposed communication whose other ranks are missing, so that "
        "transfer and waiting cannot be told apart",
        f"Capture the same steps on all ranks ({absent} are missing)."
        if absent
        else "Some ranks lost kernels: give the profiler a larger buffer, or capture fewer steps at once.",
        share_evidence("exposed_comm_unsplit", share, "of the step window, median rank"),
    )


def _unexplained_idle(measurements: Measurements) -> _Problem | None:
    if not measurements.partition or not measurements.capture.host_recorded:
        return None
    idle = measurements.per_rank(lambda row: row.idle_by_cause_ns.get("unattributed", 0))
    share = measurements.share(median(list(idle.values())))
    if share < MIN_UNEXPLAINED_SHARE:
        return None
    return _Problem(
        f"{percent(share)} of the step is idle time that the trace does not explain",
        "Kernels inside CUDA graphs are recorded in full only by recent CUPTI versions; on CPU, wrap the "
        "step's parts in record_function.",
        share_evidence("idle_unattributed", share, "of the step window, median rank"),
    )


_CHECKS = (_no_device, _no_host, _no_steps, _unsplit, _unexplained_idle)

RULE = Rule("poor-capture", "The capture is too poor to judge everything", judge)
