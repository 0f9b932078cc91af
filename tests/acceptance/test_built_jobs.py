"""Jobs whose answer is known by arithmetic: late ranks, clocks, missing data, idle causes, bandwidths."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.reading import (
    assert_partition_adds_up,
    assert_useful,
    blamed,
    by_rank_and_step,
    exposed_comm,
    rules,
    said,
)
from tests.builders import (
    BASE_NS,
    DEFAULT_COLLECTIVES,
    DENSE_ALLREDUCE,
    KJT_A2A,
    MS,
    POOLED_A2A,
    US,
    CollectiveSpec,
    CollectiveTruth,
    Job,
    JobBuilder,
    Late,
)

Diagnose = Callable[..., Any]
LATE_1 = (Late(1, 2 * MS),)


def truth_of(job: Job, collective: Any) -> CollectiveTruth:
    """The built collective that has these waits, in the same step and phase."""
    fits = [
        t
        for t in job.collectives
        if t.step == collective.step
        and t.spec.phase == collective.phase
        and (collective.op == "all_to_all") == (t.spec.op == "all_to_allv")
    ]
    assert len(fits) == 1, collective
    return fits[0]


def assert_exact_collectives(job: Job, diagnosis: Any, tolerance: int = 0) -> int:
    """Transfer and waits of every completely captured collective; how many there were."""
    whole = [c for c in diagnosis.collectives if not c.unmatched_ranks]
    for collective in whole:
        truth = truth_of(job, collective)
        assert abs(collective.transfer_ns - truth.spec.transfer_ns) <= tolerance
        assert sorted(collective.wait_ns) == sorted(truth.starts)
        for rank, wait in collective.wait_ns.items():
            assert abs(wait - truth.wait(rank)) <= tolerance
    return len(whole)


@pytest.fixture(scope="module", params=[True, False], ids=["with arguments", "without arguments"])
def late_job(request: pytest.FixtureRequest) -> Job:
    """Rank 1 does 2 ms more lookup work before each all-to-all: three times per step."""
    return JobBuilder(late=LATE_1, arguments=request.param).build()


@pytest.fixture(scope="module")
def late_answer(late_job: Job, diagnose: Diagnose, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return diagnose(late_job.write(tmp_path_factory.mktemp("late")))


class TestLateRank:
    def test_that_rank_and_no_other_is_blamed_with_2_ms(self, late_answer: Any) -> None:
        assert blamed(late_answer) == [[1]]
        lateness = late_answer.stragglers[0].lateness_ns
        assert lateness.expected == pytest.approx(2 * MS, rel=0.02)
        assert lateness.low <= lateness.expected <= lateness.high
        assert rules(late_answer)[:1] == ["straggler"]
        assert late_answer.findings[0].ranks == [1]

    def test_its_ceiling_is_three_times_2_ms(self, late_answer: Any) -> None:
        # With rank 1 the step takes 18 262 us, without it 12 259 us.
        assert late_answer.stragglers[0].ceiling_ns == pytest.approx(6 * MS, rel=0.05)

    def test_it_is_late_in_every_step(self, late_answer: Any) -> None:
        entry = late_answer.stragglers[0]
        assert entry.steps_late == entry.steps_judged == len(late_answer.run.steps)
        assert entry.persistence == "persistent"
        assert entry.behind_median_ns == pytest.approx(2 * MS, rel=0.02)

    def test_transfer_and_waits_are_exact(self, late_job: Job, late_answer: Any) -> None:
        # Four collectives per step; the clocks agree, so nothing is corrected.
        assert assert_exact_collectives(late_job, late_answer) >= 4 * (len(late_answer.run.steps) - 1)

    def test_waiting_is_exposed_wait_on_the_others_only(self, late_job: Job, late_answer: Any) -> None:
        rows = by_rank_and_step(late_answer.partition)
        seen = [key for key in rows if key[1] in late_job.closed_steps]
        assert len(seen) >= 2 * 4
        for rank, step in seen:
            truth = late_job.partition(rank, step)
            assert rows[rank, step].exposed_comm_wait_ns == truth["wait"]
            assert rows[rank, step].exposed_comm_transfer_ns == truth["transfer"]
            assert rows[rank, step].compute_ns == truth["compute"]
            assert rows[rank, step].exposed_copy_ns == truth["copy"]
            assert rows[rank, step].idle_ns == truth["idle"]

    def test_forward_share_is_exact(self, late_job: Job, late_answer: Any) -> None:
        # Rank 0: 2101 us of 6103 us; rank 1: 100 us of 6103 us.
        assert len(late_answer.forward) >= 2 * 4
        for row in late_answer.forward:
            span, comm = late_job.forward(row.rank, row.step)
            assert (row.span_ns, row.comm_ns, row.exposed_comm_ns) == (span, comm, comm)
            assert row.exposed_wait_ns == comm - 100 * US
            assert row.exposed_transfer_ns == 100 * US


def test_one_late_step_of_six_is_not_called_persistent(diagnose_job: Diagnose) -> None:
    job = JobBuilder(steps=6, late=(Late(1, 4 * MS, steps=(3,)),)).build()
    diagnosis = diagnose_job(job)
    assert blamed(diagnosis) in ([], [[1]])
    assert all(entry.persistence != "persistent" for entry in diagnosis.stragglers)


def test_ranks_late_together_are_one_entry(diagnose_job: Diagnose) -> None:
    diagnosis = diagnose_job(JobBuilder(world_size=8, late=(Late(3, 2 * MS), Late(5, 2 * MS))).build())
    assert blamed(diagnosis) == [[3, 5]]


def test_lateness_is_weighed_by_time_not_by_count(diagnose_job: Diagnose) -> None:
    # Rank 3 is last in two of three all-to-alls by 5 us, rank 1 in the third by 3 ms.
    often = Late(3, 5 * US, phases=("sparse_data_dist", "backward"))
    rarely = Late(1, 3 * MS, phases=("forward",))
    assert blamed(diagnose_job(JobBuilder(late=(often, rarely)).build())) == [[1]]


@pytest.mark.parametrize(("lateness", "expected"), [(5 * US, []), (1 * MS, [[1]])])
def test_a_lateness_that_costs_nothing_is_not_blamed(
    diagnose_job: Diagnose, lateness: int, expected: list[list[int]]
) -> None:
    # 3 x 5 us of 12 274 us is 0.1 % of the step; 3 x 1 ms of 15 262 us is 20 %.
    assert blamed(diagnose_job(JobBuilder(late=(Late(1, lateness),)).build())) == expected


def test_late_input_and_long_lookup_are_different_causes(tmp_path: Path, diagnose: Diagnose) -> None:
    by_input = diagnose(JobBuilder(input_delay_ns={2: 20 * MS}).build().write(tmp_path / "input"))
    by_lookup = diagnose(JobBuilder(late=(Late(2, 6 * MS),)).build().write(tmp_path / "lookup"))
    assert blamed(by_input) == blamed(by_lookup) == [[2]]
    assert "input" in by_input.stragglers[0].cause.lower()
    assert "input" not in by_lookup.stragglers[0].cause.lower()


class TestClocks:
    def test_a_clock_5_ms_ahead_is_found_and_nobody_is_blamed(self, diagnose_job: Diagnose) -> None:
        job = JobBuilder(clock_ahead_ns={1: 5 * MS}).build()
        diagnosis = diagnose_job(job)
        clocks = {c.rank: c for c in diagnosis.clocks}
        ahead = clocks[1].offset_ns - clocks[0].offset_ns
        assert abs(ahead - 5 * MS) <= clocks[0].residual_ns + clocks[1].residual_ns + 1
        assert all(c.residual_ns <= 1 * US for c in clocks.values())
        assert abs(clocks[2].offset_ns - clocks[0].offset_ns) <= 1
        assert diagnosis.stragglers == []
        assert diagnosis.findings == []
        assert assert_exact_collectives(job, diagnosis, tolerance=2) > 0

    @pytest.mark.parametrize("ahead", [-5 * MS, 5 * MS, 1_000 * MS])
    def test_a_wrong_clock_hides_no_late_rank(self, diagnose_job: Diagnose, ahead: int) -> None:
        job = JobBuilder(clock_ahead_ns={1: ahead}, late=(Late(2, 2 * MS),)).build()
        diagnosis = diagnose_job(job)
        assert blamed(diagnosis) == [[2]]
        assert diagnosis.stragglers[0].lateness_ns.expected == pytest.approx(2 * MS, rel=0.02)

    def test_the_late_rank_may_have_the_wrong_clock(self, diagnose_job: Diagnose) -> None:
        job = JobBuilder(clock_ahead_ns={1: 5 * MS}, late=LATE_1).build()
        assert blamed(diagnose_job(job)) == [[1]]


class TestMissingData:
    def test_one_collective_missing_on_one_rank_shifts_no_other(self, diagnose_job: Diagnose) -> None:
        # Rank 2 lost the second collective (the pooled all-to-all) of the second step.
        for arguments in (True, False):
            job = JobBuilder(late=LATE_1, arguments=arguments, missing_kernels=frozenset({(2, 1, 1)})).build()
            diagnosis = diagnose_job(job)
            assert blamed(diagnosis) == [[1]]
            assert diagnosis.stragglers[0].lateness_ns.expected == pytest.approx(2 * MS, rel=0.02)
            assert assert_exact_collectives(job, diagnosis) >= 4
            unmatched = [(c.step, c.unmatched_ranks) for c in diagnosis.collectives if c.unmatched_ranks]
            dropped = [d.step for d in diagnosis.run.dropped_steps]
            assert unmatched == [(11, [2])] or 11 in dropped, "the loss is not said"
            assert_partition_adds_up(diagnosis)

    @pytest.mark.parametrize("arguments", [True, False])
    def test_one_rank_file_missing(self, tmp_path: Path, diagnose: Diagnose, arguments: bool) -> None:
        job = JobBuilder(late=(Late(2, 2 * MS),), arguments=arguments).build()
        diagnosis = diagnose(job.write(tmp_path, ranks=[0, 2, 3]))
        assert diagnosis.run.ranks == [0, 2, 3]
        assert diagnosis.run.missing_ranks == [1]
        assert said(diagnosis).strip(), "the absence is not said"
        assert blamed(diagnosis) in ([], [[2]])
        assert diagnosis.collectives
        for collective in diagnosis.collectives:
            assert collective.unmatched_ranks == [1]
            assert collective.transfer_ns is None  # the absent rank may have been the last
            truth = truth_of(job, collective)
            assert collective.wait_ns == {rank: truth.wait(rank) for rank in (0, 2, 3)}
        assert_partition_adds_up(diagnosis)
        assert all(p.exposed_comm_transfer_ns == 0 for p in diagnosis.partition)

    def test_one_rank_alone_is_not_judged_for_lateness(self, tmp_path: Path, diagnose: Diagnose) -> None:
        diagnosis = diagnose(JobBuilder(late=LATE_1).build().write(tmp_path, ranks=[0]))
        assert diagnosis.run.missing_ranks == [1, 2, 3]
        assert diagnosis.stragglers == []
        assert "straggler" in {n.rule for n in diagnosis.not_judged}
        # 230 us of transfer and 6003 us of waiting, inseparable.
        steady = [p for p in diagnosis.partition if p.step in (11, 12)]
        assert {p.exposed_comm_unsplit_ns for p in steady} == {6_233 * US}

    def test_without_step_marks_the_answer_stays(self, diagnose_job: Diagnose) -> None:
        job = JobBuilder(late=LATE_1, steps=5, profiler_step=False).build()
        diagnosis = diagnose_job(job)
        assert blamed(diagnosis) == [[1]]
        assert "ProfilerStep" not in diagnosis.run.step_source
        assert len(diagnosis.run.steps) >= 3
        assert_useful(diagnosis)

    def test_a_slow_step_is_dropped_wherever_it_stands(self, tmp_path: Path, diagnose: Diagnose) -> None:
        for position in (0, 2):
            job = JobBuilder(steps=6, slow_steps={position: 4.0}).build()
            diagnosis = diagnose(job.write(tmp_path / str(position)))
            assert [d.step for d in diagnosis.run.dropped_steps] == [10 + position]
            assert diagnosis.findings == []


class TestTwoRunsInOneFolder:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """Rank 1 late in the older run, rank 2 in the newer, ten minutes later."""
        JobBuilder(late=LATE_1).build().write(tmp_path / "a")
        later = dict.fromkeys(range(4), 600_000 * MS)
        JobBuilder(late=(Late(2, 2 * MS),), clock_ahead_ns=later).build().write(tmp_path / "b")
        return tmp_path

    def test_the_newest_is_analysed_and_the_other_is_listed(self, folder: Path, diagnose: Diagnose) -> None:
        diagnosis = diagnose(folder)
        assert blamed(diagnosis) == [[2]]
        assert [(other.index, other.ranks) for other in diagnosis.run.other_runs] == [(1, [0, 1, 2, 3])]

    def test_run_picks_the_older(self, folder: Path, diagnose: Diagnose) -> None:
        assert blamed(diagnose(folder, run=1)) == [[1]]


class TestIdleCauses:
    """Who keeps the device idle; the default job has 9 us of launch gaps per step."""

    @staticmethod
    def steady(job: Job, diagnosis: Any) -> list[Any]:
        rows = [row for row in diagnosis.partition if row.step in job.closed_steps]
        assert len(rows) >= 2 * job.knobs.world_size
        for row in rows:
            assert row.idle_ns == job.partition(row.rank, row.step)["idle"]
        return rows

    def test_a_slow_loader_is_input(self, diagnose_job: Diagnose) -> None:
        # The loader takes 20.1 ms, the optimizer hides 2 ms of it: 18.1 ms idle of 30.4 ms.
        job = JobBuilder(input_delay_ns=dict.fromkeys(range(4), 20 * MS)).build()
        diagnosis = diagnose_job(job)
        for row in self.steady(job, diagnosis):
            assert row.idle_by_cause_ns.get("input", 0) >= 0.95 * row.idle_ns
        assert rules(diagnosis)[:1] == ["input-bound"]
        assert diagnosis.stragglers == []

    def test_a_stream_synchronisation_is_host_sync(self, diagnose_job: Diagnose) -> None:
        # The call after forward returns 3 ms after the device has drained: 3.0 of 15.3 ms.
        job = JobBuilder(sync_stall_ns=3 * MS).build()
        diagnosis = diagnose_job(job)
        for row in self.steady(job, diagnosis):
            assert row.idle_by_cause_ns.get("host_sync", 0) >= 0.9 * row.idle_ns
        assert "host-bound" in rules(diagnosis)
        assert "input-bound" not in rules(diagnosis)

    def test_many_small_kernels_behind_slow_operators_are_host(self, diagnose_job: Diagnose) -> None:
        # 250 kernels of 40-60 us, each 306 us of host time apart: 65 of 78 ms idle.
        job = JobBuilder(pieces=50, host_op_ns=300 * US).build()
        diagnosis = diagnose_job(job)
        for row in self.steady(job, diagnosis):
            host = row.idle_by_cause_ns.get("host", 0) + row.idle_by_cause_ns.get("launch_latency", 0)
            assert host >= 0.9 * row.idle_ns
        assert "host-bound" in rules(diagnosis)
        assert "input-bound" not in rules(diagnosis)


class TestExposedAllToAll:
    SLOW = CollectiveSpec("all_to_allv", "forward", 5 * MS, 50_000_000, "## alltoall_fwd_single ##")

    def test_a_long_transfer_is_about_bytes(self, diagnose_job: Diagnose) -> None:
        # 5 ms of 17.2 ms; everybody arrives together.
        job = JobBuilder(collectives=(KJT_A2A, self.SLOW, *DEFAULT_COLLECTIVES[2:])).build()
        diagnosis = diagnose_job(job)
        assert rules(diagnosis) == ["unquantized-exchange", "exposed-all-to-all"]
        assert diagnosis.stragglers == []
        cause, size = diagnosis.findings
        # FP8 with its scales keeps 1.06 of 4 bytes: 73.5 % of what is not latency can go, less the codec.
        assert cause.gain.kind == "replayed"
        assert 0.5 * 5 * MS < cause.gain.step_ns.expected <= 0.735 * 5 * MS
        gain = size.gain
        assert gain.kind == "ceiling"
        assert gain.step_ns.expected <= 5.3 * MS  # all that could vanish: 5 ms + 130 us of the others

    def test_a_hidden_collective_costs_nothing(self, diagnose_job: Diagnose) -> None:
        # 2.9 ms of all-reduce beside 3 ms of backward.
        hidden = CollectiveSpec("allreduce", "backward", 2_900 * US, 2_000_000, "", overlapped=True)
        job = JobBuilder(steps=6, collectives=(*DEFAULT_COLLECTIVES[:3], hidden)).build()
        diagnosis = diagnose_job(job)
        assert diagnosis.findings == []
        for row in diagnosis.partition:
            if row.step in job.closed_steps:
                assert exposed_comm(row) == 230 * US


class TestBandwidth:
    """Bus bandwidth as nccl-tests defines it, for 4 ranks."""

    def test_all_reduce(self, diagnose_job: Diagnose) -> None:
        # 2 000 000 floats in 500 us: 16 GB/s, times 2 x 3/4.
        diagnosis = diagnose_job(JobBuilder().build())
        rows = [c for c in diagnosis.collectives if c.phase == "backward" and c.op == "all_reduce"]
        assert rows
        for row in rows:
            assert row.bytes == 8_000_000
            assert row.algorithm_gbps == pytest.approx(16.0)
            assert row.bus_gbps == pytest.approx(24.0)

    def test_reduce_scatter(self, diagnose_job: Diagnose) -> None:
        # 4 000 000 halves in, 100 us: 80 GB/s, times 3/4.
        spec = CollectiveSpec("_reduce_scatter_base", "backward", 100 * US, 4_000_000, "", dtype="Half")
        diagnosis = diagnose_job(JobBuilder(collectives=(spec,)).build())
        for row in diagnosis.collectives:
            assert row.bytes == 8_000_000
            assert row.bus_gbps == pytest.approx(60.0)
        assert diagnosis.collectives

    def test_all_gather_counts_what_everybody_receives(self, diagnose_job: Diagnose) -> None:
        # 1 000 000 halves in, four times that out, 100 us: 80 GB/s, times 3/4.
        spec = CollectiveSpec("_allgather_base", "forward", 100 * US, 1_000_000, "", dtype="Half")
        diagnosis = diagnose_job(JobBuilder(collectives=(spec,)).build())
        assert diagnosis.collectives
        for row in diagnosis.collectives:
            assert row.bus_gbps == pytest.approx(60.0)

    def test_uneven_all_to_all(self, diagnose_job: Diagnose) -> None:
        # Ranks send 1, 1, 1 and 5 million floats: the largest is 2.5 times the mean of 2 million.
        counts = (1_000_000, 1_000_000, 1_000_000, 5_000_000)
        spec = CollectiveSpec("all_to_allv", "forward", 1 * MS, 0, POOLED_A2A.label, per_rank=counts)
        diagnosis = diagnose_job(JobBuilder(collectives=(spec, DENSE_ALLREDUCE)).build())
        rows = [c for c in diagnosis.collectives if c.op == "all_to_all"]
        assert rows
        for row in rows:
            assert row.bytes == 20_000_000
            assert row.size_imbalance == pytest.approx(2.5)

    def test_a_label_names_each_all_to_all(self, diagnose_job: Diagnose) -> None:
        diagnosis = diagnose_job(JobBuilder().build())
        labels = {c.phase: str(c.label) for c in diagnosis.collectives if c.op == "all_to_all"}
        assert "alltoall_fwd_single" in labels["forward"]
        assert "alltoall_bwd_single" in labels["backward"]
        assert "kjt values" in labels["sparse_data_dist"]

    def test_nothing_is_invented_without_arguments(self, diagnose_job: Diagnose) -> None:
        diagnosis = diagnose_job(JobBuilder(arguments=False).build())
        assert diagnosis.collectives
        assert {(c.bytes, c.bus_gbps) for c in diagnosis.collectives} == {(None, None)}


class TestGlooOnCpu:
    """The same job without a GPU: compute on the main thread, collectives on gloo's."""

    @pytest.fixture
    def job(self) -> Job:
        return JobBuilder(gpu=False, late=LATE_1).build()

    def test_the_late_rank_is_found(self, job: Job, diagnose_job: Diagnose) -> None:
        diagnosis = diagnose_job(job)
        assert blamed(diagnosis) == [[1]]
        assert diagnosis.stragglers[0].lateness_ns.expected == pytest.approx(2 * MS, rel=0.02)

    def test_transfer_and_waits_are_exact(self, job: Job, diagnose_job: Diagnose) -> None:
        assert assert_exact_collectives(job, diagnose_job(job)) >= 8

    def test_the_partition_adds_up_over_the_steps_main_thread(self, job: Job, diagnose_job: Diagnose) -> None:
        diagnosis = diagnose_job(job)
        assert_useful(diagnosis)
        assert diagnosis.run.backend == "gloo"
        rows = [row for row in diagnosis.partition if row.rank == 0]
        assert rows
        # Rank 0 waits 6 ms per step, and nothing runs beside its waiting.
        for row in rows:
            assert row.exposed_comm_wait_ns == pytest.approx(6 * MS, rel=0.02)


def test_the_base_time_of_a_file_counts(tmp_path: Path, diagnose: Diagnose) -> None:
    """``baseTimeNanoseconds`` may differ between the files of a run; it must be added."""
    job = JobBuilder(late=LATE_1).build()
    folder = job.write(tmp_path / "job", ranks=[0, 1, 2])
    shifted = JobBuilder(late=LATE_1, clock_ahead_ns={3: 7 * MS}).build().text(3)
    text = shifted.replace(str(BASE_NS), str(BASE_NS - 7 * MS))
    (folder / "rank3.pt.trace.json").write_text(text)
    diagnosis = diagnose(folder)
    assert all(c.offset_ns == 0 for c in diagnosis.clocks)
    assert blamed(diagnosis) == [[1]]
