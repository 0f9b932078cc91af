"""The first sentence."""

from dataclasses import replace

from msgspec import structs

from tests.advice.factory import measurements
from traceinsight.advice.registry import RULES
from traceinsight.engine.judgement import judge_all
from traceinsight.engine.verdict import verdict_of


def verdict(case: dict[str, object]) -> str:
    one = measurements(case)
    return verdict_of(one, judge_all(RULES, one).findings)


def test_a_healthy_run_says_what_was_looked_for_and_how_much_computes() -> None:
    text = verdict({"idle": {"dependency": 40}})
    assert text.startswith("Healthy: no bottleneck found above 5.0% of the step")
    assert "the GPUs compute 96% of it (median over ranks and steps)" in text  # 1000 - 40 us


def test_the_largest_finding_comes_first_with_its_number() -> None:
    # Input takes 300 us of 1000, the host 150: 55 % are left to compute.
    text = verdict({"idle": {"input": 300, "host": 150}})
    assert text.startswith(
        "The GPUs wait for input data: 30% of the step; then: the GPUs wait for the host: 15%"
    )
    assert "compute 55% of it" in text


def test_what_was_not_captured_is_no_health() -> None:
    assert "Healthy" not in verdict({"parts": {"unsplit": 300}, "missing": 4})


def test_without_any_device_the_bottleneck_cannot_be_judged() -> None:
    text = verdict({"capture": {"device_recorded": []}})
    assert text.startswith("The bottleneck cannot be judged: ")
    assert text.endswith(".")


def test_steps_without_length_are_no_health() -> None:
    one = measurements({"idle": {"dependency": 40}})
    lost = replace(one, partition=[structs.replace(row, window_ns=0) for row in one.partition])
    assert verdict_of(lost, []).startswith("The bottleneck cannot be judged: most steps have no length")
