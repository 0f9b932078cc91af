"""The whole diagnosis of lock-step jobs, and what is said of their capture."""

import pytest

from tests.trace.recordings import MS, US, call, kernel, lockstep, recording
from traceinsight.diagnosis import Diagnosis, OtherRun
from traceinsight.engine import diagnose
from traceinsight.trace.assemble import assemble
from traceinsight.trace.recording import Recording


def diagnosis(recordings: list[Recording]) -> Diagnosis:
    return diagnose(assemble(recordings), version="0")


def rank_two_late(rank: int, step: int, at: int) -> int:
    return 5 * MS + (2 * MS if rank == 2 else 0)


def test_a_late_rank_is_the_verdict_the_finding_and_the_roadmap() -> None:
    found = diagnosis(lockstep(rank_two_late))
    assert found.verdict.startswith("Rank 2 comes late to the collectives")
    assert [one.rule for one in found.findings] == ["straggler"]
    assert [one.rule for one in found.roadmap] == ["straggler"]
    gain = found.findings[0].gain
    assert gain is not None
    assert gain.step_ns.expected == 3 * 2 * MS
    assert found.run.steps == [0, 1, 2, 3, 4]


def test_a_healthy_job_gets_no_finding() -> None:
    found = diagnosis(lockstep(lambda rank, step, at: 5 * MS))
    assert found.findings == []
    assert found.stragglers == []
    assert found.verdict.startswith("Healthy")


def test_moving_all_times_changes_nothing() -> None:
    plain = diagnosis(lockstep(rank_two_late, start_ns=MS))
    assert diagnosis(lockstep(rank_two_late, start_ns=1_700_000_000 * 1000 * MS)) == plain


def test_the_order_of_ranks_changes_nothing() -> None:
    jobs = lockstep(rank_two_late)
    assert diagnosis(jobs[::-1]) == diagnosis(jobs)


def test_a_missing_rank_is_named_and_makes_a_note() -> None:
    found = diagnosis(lockstep(rank_two_late)[:3])
    assert found.run.missing_ranks == [3]
    assert "missing-ranks" in [note.code for note in found.data_quality]
    assert all(one.transfer_ns is None for one in found.collectives)


def test_a_lost_kernel_makes_a_note_with_its_rank() -> None:
    jobs = lockstep(rank_two_late)
    assert "unmatched-collective" not in [note.code for note in diagnosis(jobs).data_quality]
    found = diagnosis([*jobs[:3], without_first_exchange(jobs[3])])
    (note,) = [note for note in found.data_quality if note.code == "unmatched-collective"]
    assert (note.rank, note.count) == (3, 1)


def without_first_exchange(one: Recording) -> Recording:
    """The same rank without its first exchange and the call that launched it."""
    events = one.events
    exchange = next(event for event in range(len(events)) if one.name_of(event).startswith("nccl"))
    lost = int(events.correlation[exchange])
    rows = []
    for event in range(len(events)):
        if int(events.correlation[event]) == lost:
            continue
        lane = one.lanes[int(events.lane[event])]
        rows.append(
            row_of(one, event, lane.tid if lane.stream is None else lane.stream)  # streams keep their number
        )
    return recording(rows, rank=one.rank, world_size=one.world_size, backend=one.backend)


def row_of(one: Recording, event: int, lane: str | int) -> object:
    events = one.events
    start = int(events.start_ns[event])
    pattern = kernel("", 0, 0) if isinstance(lane, int) else call("", 0, 0)
    return pattern._replace(
        kind=int(events.kind[event]), name=one.name_of(event), start=start,
        end=start + int(events.dur_ns[event]), lane=lane, correlation=int(events.correlation[event]),
    )  # fmt: skip


def test_other_runs_are_listed() -> None:
    other = OtherRun(index=1, files=["old.json"], ranks=[0], start="then")
    found = diagnose(assemble(lockstep(rank_two_late)), version="1.2", other_runs=[other])
    assert found.run.other_runs == [other]
    assert (found.generator.name, found.generator.version) == ("traceinsight", "1.2")


def test_a_gpu_recorded_alone_is_said_to_be_too_little() -> None:
    found = diagnosis([recording(kernel("k", MS, 2 * MS), kernel("k", 2 * MS + 10 * US, 3 * MS))])
    assert [one.rule for one in found.findings] == ["poor-capture"]
    assert {"straggler", "input-bound", "host-bound"} <= {one.rule for one in found.not_judged}


@pytest.mark.parametrize("recordings", [[recording(rank=0)], [recording(rank=None)]])
def test_an_empty_recording_is_diagnosed_too(recordings: list[Recording]) -> None:
    found = diagnosis(recordings)
    assert found.partition == []
    assert found.verdict.startswith("The bottleneck cannot be judged")
