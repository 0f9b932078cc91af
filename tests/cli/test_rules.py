"""``traceinsight rules``: what a rule's page says in a terminal."""

import re

import pytest

from traceinsight.advice.registry import RULES
from traceinsight.cli import main


@pytest.mark.parametrize("rule", [one.id for one in RULES])
def test_every_threshold_a_rule_names_has_its_value(rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rules", rule]) == 0
    text = " ".join(capsys.readouterr().out.split())
    named = re.findall(r"\b(?:MIN|MAX|REACHABLE|SLOWEST)_[A-Z_]+(?: \(([^)]*)\))?", text)
    assert all(re.fullmatch(r"[0-9.]+%?", value) for value in named), text


def test_the_value_is_the_one_that_decides(capsys: pytest.CaptureFixture[str]) -> None:
    # advice.exchanges.MIN_SHARE is 0.05, small_batch.MIN_LATENCY_SHARE 0.5.
    main(["rules", "small-batch"])
    text = " ".join(capsys.readouterr().out.split())
    assert "at least MIN_SHARE (5.0%) of the step window and at least MIN_LATENCY_SHARE (50.0%)" in text
