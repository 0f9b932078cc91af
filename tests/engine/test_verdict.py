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
    assert "the GPUs compute 96% of the step (median over ranks and steps)" in text  # 1000 - 40 us


def test_the_largest_finding_comes_first_with_its_number() -> None:
    # Input takes 300 us of 1000, the host 150: 55 % are left to compute.
    text = verdict({"idle": {"input": 300, "host": 150}})
    assert text.startswith(
        "The GPUs wait for input data: 30% of the step; then: the GPUs wait for the host: 15%"
    )
    assert "compute 55% of the step" in text


def test_what_was_not_captured_is_no_health() -> None:
    assert "Healthy" not in verdict({"parts": {"unsplit": 300}, "missing": 4})


def test_what_the_trace_hides_comes_first_where_it_is_more_than_any_finding() -> None:
    # 500 us of 1000 are idle for no recorded reason, 100 us wait for input; then the other way round.
    text = verdict({"idle": {"unattributed": 500, "input": 100}})
    assert text.startswith(
        "Too little was captured to judge everything: 50% of the step is idle time that the trace does not "
        "explain; in the rest: the GPUs wait for input data: 10% of the step; the GPUs compute 40%"
    )
    assert verdict({"idle": {"unattributed": 100, "input": 500}}).startswith("The GPUs wait for input data")


def test_without_any_device_the_bottleneck_cannot_be_judged() -> None:
    text = verdict({"capture": {"device_recorded": []}})
    assert text.startswith("The bottleneck cannot be judged: ")
    assert text.endswith(".")


def test_steps_without_length_are_no_health() -> None:
    one = measurements({"idle": {"dependency": 40}})
    lost = replace(one, partition=[structs.replace(row, window_ns=0) for row in one.partition])
    assert verdict_of(lost, []).startswith("The bottleneck cannot be judged: most steps have no length")
