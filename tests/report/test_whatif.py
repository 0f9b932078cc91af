"""The terminal answer of ``whatif``: what each edit is said to do."""

import pytest
from msgspec import structs

from traceinsight.diagnosis import Interval, NanosecondRange, Run
from traceinsight.diagnosis.prediction import PredictedEdit, Replay, WhatIf
from traceinsight.report.options import ReportOptions
from traceinsight.report.whatif import render_what_if

RUN = Run(
    world_size=4, ranks=[0, 1, 2, 3], missing_ranks=[], device=None, backend=None, steps=[1],
    dropped_steps=[], other_runs=[], step_source="ProfilerStep", files=[], quantized_comms=[],
    simulated=False,
)  # fmt: skip
REPLAY = Replay(residual_share=0.001, worst_step=0.002, predicted=True, reason=None)


def edit(speedup: float, *, factor: float = 1.0, detail: str | None = None) -> PredictedEdit:
    step_ns = round(1e7 / speedup)
    same = Interval(low=speedup, expected=speedup, high=speedup)
    steps = NanosecondRange(low=step_ns, expected=step_ns, high=step_ns)
    return PredictedEdit("2d=8", steps, same, same, factor, None, detail)


def shown(*edits: PredictedEdit, width: int = 80) -> str:
    answer = WhatIf(run=RUN, replay=REPLAY, step_ns=10_000_000, edits=list(edits))
    text = render_what_if(answer, "terminal", ReportOptions(width=width))
    assert max(map(len, text.splitlines())) <= width
    return text


def test_an_edit_that_slows_the_step_down_says_so() -> None:
    assert "2d=8 slows this run down: the step takes longer." in shown(edit(0.8))
    assert "slow" not in shown(edit(1.2))


@pytest.mark.parametrize(("factor", "slows"), [(1.5, True), (2.0, False)])
def test_with_more_examples_per_step_the_time_per_example_counts(factor: float, slows: bool) -> None:
    text = shown(edit(0.6, factor=factor))  # 0.9 and 1.2 times as fast per example
    assert ("each example takes longer" in text) == slows


def test_what_an_edit_assumed_is_told() -> None:
    long = "8 ranks per node assumed; replica sync not included: table sizes are not known (run.json)"
    text = " ".join(shown(edit(1.2, detail=long)).split())
    assert f"2d=8: {long}." in text


@pytest.mark.parametrize("width", [40, 80, 300])
def test_it_fits_the_screen_whatever_an_edit_is_called(width: int) -> None:
    many = "no-straggler=" + "+".join(map(str, range(2000)))
    named = structs.replace(edit(1.2), edit=many)
    text = shown(
        named, structs.replace(named, step_ns=None, speedup=None, not_applicable="x" * 500), width=width
    )
    assert "does not apply" in text
    assert "8.33 ms" in text  # 10 ms / 1.2: numbers are never cut


def test_the_first_sentence_is_the_answer() -> None:
    # 10 ms today; 1.25 times as fast is 8 ms. With twice the examples each is 2.5 times as fast.
    assert shown(edit(1.25)).startswith(
        "A step takes 10.0 ms today; with the edit 8.00 ms is predicted (8.00"
    )
    assert "2.50x as fast per example." in " ".join(shown(edit(1.25, factor=2.0)).split())
    unpredicted = structs.replace(edit(1.0), step_ns=None, speedup=None, not_applicable="why")
    assert shown(unpredicted).startswith("A step takes 10.0 ms today; no edit applies to this run.")
