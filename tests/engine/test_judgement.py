"""All rules are heard, whatever one of them does."""

from tests.advice.factory import measurements
from traceinsight.advice.measurements import Measurements
from traceinsight.advice.registry import RULES
from traceinsight.advice.rule import Clean, Found, NotApplicable, Outcome, Rule, ceiling
from traceinsight.diagnosis import Finding, NanosecondRange
from traceinsight.engine.judgement import judge_all


def broken(_: Measurements) -> Outcome:
    raise ZeroDivisionError("no steps")


def finding(rule: str, gain_us: int | None) -> Rule:
    gain = None if gain_us is None else ceiling(1e6, NanosecondRange(low=0, expected=gain_us, high=gain_us))
    one = Finding(
        rule=rule, severity="minor", confidence="high", title=rule, ranks=[], evidence=[], gain=gain,
        action="", quality_risk="",
    )  # fmt: skip
    return Rule(rule, "", lambda _: Found([one]))


def test_a_rule_that_raises_is_not_judged_and_leaves_the_others() -> None:
    case = measurements({"idle": {"input": 300}})
    whole = judge_all(RULES, case)
    with_broken = judge_all([Rule("broken", "", broken), *RULES], case)
    assert with_broken.findings == whole.findings
    assert with_broken.clean == whole.clean
    (failed,) = [one for one in with_broken.not_judged if one not in whole.not_judged]
    assert failed.rule == "broken"
    assert "ZeroDivisionError" in failed.reason
    assert "no steps" in failed.reason


def test_findings_come_by_expected_gain_and_those_without_one_last() -> None:
    rules = [finding("none", None), finding("small", 10), finding("zero", 0), finding("large", 500)]
    found = judge_all(rules, measurements({})).findings
    assert [one.rule for one in found] == ["large", "small", "zero", "none"]


def test_every_rule_is_heard_once() -> None:
    rules = [
        Rule("clean", "", lambda _: Clean("0 below 5")),
        Rule("blind", "", lambda _: NotApplicable("no host", "Record the host.")),
        finding("found", 10),
    ]
    judgement = judge_all(rules, measurements({}))
    assert [(one.rule, one.summary) for one in judgement.clean] == [("clean", "0 below 5")]
    assert [(one.rule, one.capture_hint) for one in judgement.not_judged] == [("blind", "Record the host.")]
    assert [one.rule for one in judgement.findings] == ["found"]


def test_one_captured_step_cannot_tell_what_persists() -> None:
    one_step = judge_all([], measurements({"steps": 1}))
    assert [one.rule for one in one_step.not_judged] == ["straggler"]
    assert judge_all([], measurements({"steps": 2})).not_judged == []
    # What is not judged anyway is not said twice.
    assert judge_all([], measurements({"steps": 1, "stragglers_not_judged": "one rank"})).not_judged == []


def test_a_healthy_run_gets_no_finding() -> None:
    judgement = judge_all(RULES, measurements({"communication": [{"transfer": 5}]}))
    assert judgement.findings == []
    assert {one.rule for one in judgement.clean} == {rule.id for rule in RULES}
