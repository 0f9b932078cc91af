"""Run the rules; one that fails must not take the others' answers with it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from traceinsight.advice.measurements import Measurements
from traceinsight.advice.rule import Borderline, Clean, Found, NotApplicable, Outcome, Rule
from traceinsight.diagnosis import CleanRule, Finding, NotJudged


@dataclass(slots=True)
class Judgement:
    """What all rules said. Findings are in the order to act on.

    The rules of ``borderline`` findings are among the clean ones: replay decides between the two.
    """

    findings: list[Finding] = field(default_factory=list)
    borderline: list[Finding] = field(default_factory=list)
    clean: list[CleanRule] = field(default_factory=list)
    not_judged: list[NotJudged] = field(default_factory=list)


def judge_all(rules: Sequence[Rule], measurements: Measurements) -> Judgement:
    """Ask every rule and order the findings by expected gain, those without one last."""
    judgement = Judgement()
    for rule in rules:
        outcome = _outcome(rule, measurements)
        if isinstance(outcome, Found):
            judgement.findings += outcome.findings
        elif isinstance(outcome, Borderline):
            judgement.borderline.append(outcome.finding)
            judgement.clean.append(CleanRule(rule=rule.id, summary=outcome.otherwise.summary))
        elif isinstance(outcome, Clean):
            judgement.clean.append(CleanRule(rule=rule.id, summary=outcome.summary))
        else:
            judgement.not_judged.append(
                NotJudged(rule=rule.id, reason=outcome.reason, capture_hint=outcome.capture_hint)
            )
    if measurements.capture.captured_steps == 1 and measurements.stragglers_not_judged is None:
        judgement.not_judged.append(_ONE_STEP)
    judgement.findings.sort(key=_expected_gain_ns, reverse=True)
    return judgement


_ONE_STEP = NotJudged(
    rule="straggler",
    reason="persistence: one step was captured, so what is late may be late by chance",
    capture_hint="Capture at least 5 steps: schedule(wait=..., warmup=2, active=5).",
)


def _outcome(rule: Rule, measurements: Measurements) -> Outcome:
    try:
        return rule.judge(measurements)
    except Exception as error:
        return NotApplicable(
            f"the rule failed ({type(error).__name__}: {error})",
            "Please report this with the trace's header.",
        )


def _expected_gain_ns(finding: Finding) -> int:
    return finding.gain.step_ns.expected if finding.gain is not None else -1
