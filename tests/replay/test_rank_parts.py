"""The replayed step in parts, against what the simulated job really did."""

from statistics import fmean

import pytest

from tests.builders import MS, JobBuilder, Late
from tests.replay.jobs import load
from traceinsight.diagnosis.prediction import RankStepParts
from traceinsight.engine.whatif import what_if

PARTS = ("compute", "transfer", "wait", "copy", "idle")
LATE = Late(2, 5 * MS, phases=("forward",))


def parts_of(one: RankStepParts) -> dict[str, int]:
    return {part: getattr(one, f"{part}_ns") for part in PARTS}


@pytest.mark.parametrize("late", [(), (LATE,)], ids=["even", "late"])
def test_unedited_the_parts_are_those_that_were_measured(late: tuple[Late, ...]) -> None:
    job = JobBuilder(late=late).build()
    answer = what_if(load(job), [])
    assert answer.parts_before == answer.parts_after
    for one in answer.parts_before:
        steps = [job.partition(one.rank, step) for step in job.closed_steps[1:]]
        for part, found in parts_of(one).items():
            # Windows of ranks begin some microseconds apart; a replayed step is the same for all ranks.
            assert found == pytest.approx(fmean(step[part] for step in steps), abs=20_000)


def test_with_the_late_rank_mended_nobody_waits_for_it() -> None:
    answer = what_if(load(JobBuilder(late=(LATE,)).build()), ["no-straggler=2"])
    for before, after in zip(answer.parts_before, answer.parts_after, strict=True):
        gone = "compute_ns" if before.rank == 2 else "wait_ns"
        assert getattr(before, gone) - getattr(after, gone) == pytest.approx(5 * MS, rel=0.01)


def test_the_parts_sum_to_the_predicted_step() -> None:
    answer = what_if(load(JobBuilder(late=(LATE,)).build()), ["2d=2,sync=10"])
    expected = answer.edits[-1].step_ns
    assert expected is not None
    for one in answer.parts_after:
        assert sum(parts_of(one).values()) + one.replica_sync_ns == pytest.approx(expected.expected, abs=5)


def test_a_cpu_has_no_parts() -> None:
    """Its compute is the host's own time, which is no work of a device."""
    answer = what_if(load(JobBuilder(gpu=False).build()), [])
    assert answer.step_ns is not None
    assert (answer.parts_before, answer.parts_after) == ([], [])


def test_a_single_step_has_no_parts() -> None:
    """Nothing says when it began: what ran before it is not in the graph."""
    answer = what_if(load(JobBuilder(steps=1).build()), [])
    assert len(answer.run.steps) == 1
    assert answer.step_ns is not None
    assert answer.parts_before == []
