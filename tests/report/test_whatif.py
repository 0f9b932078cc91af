"""The terminal answer of ``whatif``: what each edit is said to do."""

import pytest

from traceinsight.diagnosis import Interval, NanosecondRange, Run
from traceinsight.diagnosis.prediction import PredictedEdit, Replay, WhatIf
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


def shown(*edits: PredictedEdit) -> str:
    text = render_what_if(WhatIf(run=RUN, replay=REPLAY, step_ns=10_000_000, edits=list(edits)))
    assert max(map(len, text.splitlines())) <= 80
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
    assert "8 ranks per node assumed; replica sync not included" in shown(edit(1.2, detail=long))
