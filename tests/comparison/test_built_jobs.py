"""Comparisons of jobs whose every number is known by arithmetic, through their files."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from tests.builders import DEFAULT_COLLECTIVES, MS, US, CollectiveSpec, JobBuilder, Late
from traceinsight import api
from traceinsight.diagnosis.comparison import Change, Comparison

STEP_NS = 12_259 * US  # of the default job, see tests/builders.py
DEFAULT = JobBuilder(steps=6)  # 5 closed steps count
Compare = Callable[..., Comparison]


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    """Two jobs, through their files and a comparison."""

    def run(
        before: JobBuilder, after: JobBuilder, edits: tuple[str, ...] = (), **options: object
    ) -> Comparison:
        sides = []
        for name, job in (("before", before), ("after", after)):
            ranks = options.get(f"ranks_{name}")
            folder = tmp_path / f"{name}{len(list(tmp_path.iterdir()))}"
            sides.append(api.load_run(job.build().write(folder, ranks), workers=1))  # type: ignore[arg-type]
        return api.compare(*sides, edits, fail_on=options.get("fail_on", ()))  # type: ignore[arg-type]

    return run


def part(comparison: Comparison, name: str) -> Change:
    (found,) = [one.change for one in comparison.partition if one.part == name]
    return found


def test_a_longer_optimizer_is_found_with_its_size(compare: Compare) -> None:
    found = compare(DEFAULT, replace(DEFAULT, optimizer_ns=3 * MS))
    step = found.step_time
    assert (step.before_ns, step.after_ns) == (STEP_NS, STEP_NS + 1 * MS)
    assert step.share == pytest.approx(1 * MS / STEP_NS)  # 8.16 %
    assert (step.low_ns, step.high_ns) == (1 * MS, 1 * MS)  # these steps have no noise
    assert step.significant
    assert part(found, "compute").change_ns == 1 * MS
    assert part(found, "transfer").change_ns == 0
    assert found.verdict == (
        "A step is 8.2% longer (8.2% to 8.2%): 12.3 ms before, 13.3 ms after; "
        "most of it is more compute (1.00 ms)."
    )


def test_parts_sum_to_the_change_of_the_step(compare: Compare) -> None:
    slower = tuple(replace(one, transfer_ns=4 * one.transfer_ns) for one in DEFAULT_COLLECTIVES)
    found = compare(DEFAULT, replace(DEFAULT, collectives=slower, optimizer_ns=1 * MS))
    assert sum(one.change.change_ns or 0 for one in found.partition) == found.step_time.change_ns


def test_a_slower_exchange_is_found_in_its_kind_only(compare: Compare) -> None:
    def slower(one: CollectiveSpec) -> CollectiveSpec:
        return replace(one, transfer_ns=one.transfer_ns + 2 * MS) if one.phase == "forward" else one

    found = compare(DEFAULT, replace(DEFAULT, collectives=tuple(map(slower, DEFAULT_COLLECTIVES))))
    changed = {
        (one.after or one.before).label: one.exposed.change_ns  # type: ignore[union-attr]
        for one in found.communication
        if one.exposed.significant
    }
    assert changed == {"## alltoall_fwd_single ##": 2 * MS}
    assert "less" not in found.verdict
    assert "more exposed transfer (2.00 ms)" in found.verdict


def test_the_same_run_twice_is_no_change_and_said_to_be_the_same(compare: Compare) -> None:
    found = compare(DEFAULT, DEFAULT, fail_on=["regression=0%", "idle=0%", "exposed-comm=0%"])
    assert found.verdict == "No change beyond the noise of 1.0%: 12.3 ms before, 12.3 ms after."
    assert not found.step_time.significant
    assert not any(one.change.significant for one in [*found.partition, *found.idle_by_cause])
    assert "same-input" in [note.code for note in found.notes]
    assert {gate.outcome for gate in found.gates} == {"passed"}


def test_two_runs_of_one_noisy_job_are_no_change(compare: Compare) -> None:
    noisy = replace(DEFAULT, jitter_ns=800 * US)
    found = compare(replace(noisy, seed=1), replace(noisy, seed=2))
    assert found.step_time.change_ns != 0
    assert not found.step_time.significant
    assert "same-input" not in [note.code for note in found.notes]


def test_a_change_smaller_than_the_noise_is_none_and_does_not_fail_a_gate(compare: Compare) -> None:
    # Every second step takes some 5 ms more or less of compute; the change is 0.5 ms, 4 % of a step.
    noisy = replace(DEFAULT, steps=8, slow_steps={1: 1.5, 3: 1.5, 5: 1.5})
    found = compare(noisy, replace(noisy, optimizer_ns=2_500 * US), fail_on=["regression=1%"])
    assert (found.step_time.change_ns or 0) >= 500 * US
    assert not found.step_time.significant
    assert found.verdict.startswith("No change beyond the noise of ")
    (gate,) = found.gates
    assert gate.outcome == "passed"
    assert "inside the noise" in gate.reason


def test_exchanged_runs_give_the_mirrored_comparison(compare: Compare) -> None:
    one = replace(DEFAULT, jitter_ns=200 * US, seed=1)
    other = replace(DEFAULT, jitter_ns=200 * US, seed=2, optimizer_ns=4 * MS, late=(Late(2, 2 * MS),))
    there, back = compare(one, other), compare(other, one)
    for first, second in zip(
        [there.step_time, *(row.change for row in there.partition)],
        [back.step_time, *(row.change for row in back.partition)],
        strict=True,
    ):
        assert (first.before_ns, first.after_ns) == (second.after_ns, second.before_ns)
        assert first.change_ns is not None and second.change_ns is not None
        assert first.change_ns == pytest.approx(-second.change_ns, abs=1)
        assert first.low_ns is not None and second.high_ns is not None
        assert first.low_ns == pytest.approx(-second.high_ns, abs=1)
    assert {row.presence for row in there.stragglers} == {"appeared"}
    assert {row.presence for row in back.stragglers} == {"vanished"}
    assert "longer" in there.verdict
    assert "shorter" in back.verdict


def test_a_prediction_is_held_against_the_run_with_its_edit(compare: Compare) -> None:
    late = replace(DEFAULT, late=(Late(2, 3 * MS, phases=("forward",)),))
    found = compare(late, DEFAULT, ("no-straggler=2",))
    (row,) = found.predictions
    assert row.measured_ns == STEP_NS
    assert row.error_share == pytest.approx(0, abs=0.01)
    assert row.step_ns is not None
    assert row.inside_interval == (row.step_ns.low <= STEP_NS <= row.step_ns.high)


def test_of_several_edits_the_last_holds_them_all(compare: Compare) -> None:
    late = replace(DEFAULT, late=(Late(2, 3 * MS, phases=("forward",)),))
    found = compare(late, DEFAULT, ("no-straggler=2", "qcomms=fp8"))
    assert [(row.edit, row.measured_ns) for row in found.predictions] == [
        ("no-straggler=2", None),
        ("qcomms=fp8", STEP_NS),
    ]


def test_one_step_is_not_judged_and_fails_the_gate(compare: Compare) -> None:
    found = compare(
        replace(DEFAULT, steps=1), replace(DEFAULT, optimizer_ns=9 * MS), fail_on=["regression=5%"]
    )
    assert not found.step_time.judged
    assert not found.step_time.significant
    assert found.step_time.low_ns is None
    assert "one step and 5 steps say nothing about the noise" in found.verdict
    assert [gate.outcome for gate in found.gates] == ["not_judged"]


@pytest.mark.parametrize(
    ("steps", "counted", "judged"), [(2, 2, False), (3, 3, True), (4, 3, True), (5, 4, True)]
)
def test_the_last_captured_step_counts_only_where_few_are_left(
    compare: Compare, steps: int, counted: int, judged: bool
) -> None:
    found = compare(replace(DEFAULT, steps=steps), replace(DEFAULT, steps=steps, optimizer_ns=5 * MS))
    assert len(found.before_steps) == counted
    assert found.step_time.judged is judged


def test_only_ranks_of_both_runs_count(compare: Compare) -> None:
    own = replace(DEFAULT, late=(Late(3, 2 * MS),))
    found = compare(own, own, ranks_before=[0, 1, 2, 3], ranks_after=[0, 1])
    codes = [note.code for note in found.notes]
    assert {"ranks", "missing-ranks"} <= set(codes)
    # Rank 3 computes 6 ms more per step than the others; were it in one mean only, compute would differ.
    assert part(found, "compute").change_ns == 0


def test_runs_without_a_common_rank_say_so(compare: Compare) -> None:
    found = compare(DEFAULT, DEFAULT, ranks_before=[0], ranks_after=[1])
    assert any("share none" in note.message for note in found.notes)
    assert found.step_time.judged


def test_a_job_of_another_size_says_so(compare: Compare) -> None:
    found = compare(DEFAULT, replace(DEFAULT, world_size=2))
    assert "world-size" in [note.code for note in found.notes]


def test_a_cpu_run_compares_by_its_windows(compare: Compare) -> None:
    own = replace(DEFAULT, gpu=False)
    found = compare(own, replace(own, optimizer_ns=4 * MS))
    assert found.step_time.change_ns == 2 * MS
    assert found.step_time.significant
