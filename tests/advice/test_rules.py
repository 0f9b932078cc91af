"""Every rule on the cases of ``cases/<rule>.toml``: both sides of its thresholds, healthy, not applicable."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.advice.factory import US, measurements
from traceinsight.advice.registry import RULES
from traceinsight.advice.rule import Borderline, Clean, Found, NotApplicable, Outcome
from traceinsight.diagnosis import Finding
from traceinsight.replay.edits.registry import parse_edit

CASES = Path(__file__).parent / "cases"
OUTCOMES = {"found": Found, "borderline": Borderline, "clean": Clean, "not_applicable": NotApplicable}
BY_ID = {rule.id: rule for rule in RULES}
Case = dict[str, Any]


def cases_of(rule: str) -> list[Case]:
    found: list[Case] = tomllib.loads((CASES / f"{rule}.toml").read_text(encoding="utf-8"))["case"]
    return found


ALL = [
    pytest.param(path.stem, case, id=f"{path.stem}: {case['name']}")
    for path in sorted(CASES.glob("*.toml"))
    for case in cases_of(path.stem)
]


def judge(rule: str, case: Case) -> Outcome:
    return BY_ID[rule].judge(measurements(case))


@pytest.mark.parametrize(("rule", "case"), ALL)
def test_outcome(rule: str, case: Case) -> None:
    assert isinstance(judge(rule, case), OUTCOMES[case["outcome"]])


@pytest.mark.parametrize(
    ("rule", "case"),
    [one for one in ALL if one.values[1]["outcome"] == "found"],  # type: ignore[index,call-overload]
)
def test_finding(rule: str, case: Case) -> None:
    outcome = judge(rule, case)
    assert isinstance(outcome, Found)
    (finding,) = outcome.findings
    assert finding.rule == rule
    for edit in finding.edits:
        assert parse_edit(edit).text == edit  # as `whatif --edit` takes it
    for attribute in ("severity", "confidence", "ranks", "edits"):
        if attribute in case:
            assert getattr(finding, attribute) == case[attribute]
    for attribute in ("title", "action"):
        assert case.get(attribute, "") in getattr(finding, attribute)
    assert_gain(finding, case)
    assert_evidence(finding, case)


@pytest.mark.parametrize(
    ("rule", "case"),
    [one for one in ALL if one.values[1]["outcome"] == "borderline"],  # type: ignore[index,call-overload]
)
def test_a_borderline_finding_has_what_replay_needs(rule: str, case: Case) -> None:
    outcome = judge(rule, case)
    assert isinstance(outcome, Borderline)
    assert outcome.finding.rule == rule
    assert outcome.finding.edits
    assert all(parse_edit(edit).text == edit for edit in outcome.finding.edits)
    assert outcome.finding.evidence and outcome.finding.title and outcome.finding.action
    assert outcome.otherwise.summary


def assert_gain(finding: Finding, case: Case) -> None:
    if "gain_us" not in case:
        return
    gain = finding.gain
    assert gain is not None
    assert gain.kind == "ceiling"
    assert [gain.step_ns.low, gain.step_ns.expected, gain.step_ns.high] == [us * US for us in case["gain_us"]]
    # Speedup is step now / step then, of a step of 1000 us.
    assert gain.speedup.expected == pytest.approx(1000 / (1000 - case["gain_us"][1]))


def assert_evidence(finding: Finding, case: Case) -> None:
    assert finding.evidence
    found: dict[str, float] = {}
    for one in finding.evidence:
        found.setdefault(one.metric, one.value)
    for metric, value in case.get("evidence", {}).items():
        assert found[metric] == pytest.approx(value), metric


@pytest.mark.parametrize(
    ("rule", "case"),
    [one for one in ALL if one.values[1]["outcome"] == "not_applicable"],  # type: ignore[index,call-overload]
)
def test_what_cannot_be_judged_says_what_would_help(rule: str, case: Case) -> None:
    outcome = judge(rule, case)
    assert isinstance(outcome, NotApplicable)
    assert outcome.reason
    assert outcome.capture_hint
    assert case.get("hint", "") in outcome.capture_hint


@pytest.mark.parametrize("rule", BY_ID)
def test_every_rule_has_its_cases(rule: str) -> None:
    outcomes = {case["outcome"] for case in cases_of(rule)}
    assert "clean" in outcomes
    assert outcomes & {"found", "borderline"}
    # A capture is always judged: that nothing was recorded is what the rule is for.
    assert "not_applicable" in outcomes or rule == "poor-capture"


def test_no_case_file_is_left_of_a_rule_that_is_gone() -> None:
    assert {path.stem for path in CASES.glob("*.toml")} == set(BY_ID)


@pytest.mark.parametrize("rule", BY_ID)
def test_nothing_measured_is_no_finding_but_a_poor_capture(rule: str) -> None:
    nothing = {"captured": 1, "steps": 0, "capture": {"device_recorded": [], "host_recorded": False}}
    nothing["stragglers_not_judged"] = "one rank was captured"
    assert isinstance(judge(rule, nothing), Found if rule == "poor-capture" else NotApplicable)
