"""Who is late, through clocks that differ by up to 10 ms per host, missing ranks and lost kernels.

The truth is the simulator's: who arrived when, on one clock. Every case draws its clocks anew, and ends of
one collective differ by up to ``SPREAD_NS``, so clocks are known to about that.
"""

import numpy as np
import pytest

from tests.acceptance.straggler_jobs import SPREAD_NS, Simulated, groups, judged, simulated
from tests.disturb import (
    MS,
    US,
    losing,
    ragged,
    skewed,
    skews_ns,
    without_arguments,
    without_collective,
    without_ranks,
)
from tests.trace.recordings import lockstep
from traceinsight.analyses.stragglers import StragglerJudgement
from traceinsight.api import Loaded, diagnose
from traceinsight.diagnosis import Diagnosis
from traceinsight.trace.assemble import assemble
from traceinsight.trace.recording import Recording

LATE_MS = {"a100_2x4": 1.5, "v100_4x2": 2.5, "h100_4x4": 0.5, "a100_2d": 1.5}
"""Per even job: 4 to 6 % of its step. Less than 2 % of a step is nobody's business."""

EVEN = tuple(LATE_MS)


def disturbed(job: Simulated, seed: int) -> list[Recording]:
    recordings = list(job.recordings)
    return ragged(skewed(recordings, skews_ns(recordings, seed)), seed, SPREAD_NS)


def assert_late(job: Simulated, found: StragglerJudgement, group: list[int], steps: tuple[int, ...]) -> None:
    """That group and nobody else, by what it truly was late, within the error of the clocks."""
    assert groups(found) == [group], found.not_judged
    truth = job.lateness_ns(group, steps)
    assert found.stragglers[0].lateness_ns.expected == pytest.approx(truth, abs=SPREAD_NS)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("job", EVEN)
def test_a_healthy_job_has_its_clocks_found_and_blames_nobody(job: str, seed: int) -> None:
    truth = simulated(job)
    recordings = disturbed(truth, seed)
    ahead = skews_ns(truth.recordings, seed)
    assert np.ptp(list(ahead.values())) > 10 * SPREAD_NS
    trace_set, found = judged(recordings)
    assert (found.stragglers, found.not_judged) == ((), None)
    errors = np.array([trace_set.clocks[rank].offset_ns - ahead[rank] for rank in range(truth.world)])  # type: ignore[operator]
    residual = max(clock.residual_ns or 0 for clock in trace_set.clocks.values())
    assert np.ptp(errors) <= residual <= SPREAD_NS


@pytest.mark.parametrize("what", ["compute_ms", "host_ms", "input_ms"])
@pytest.mark.parametrize("job", EVEN)
def test_a_late_rank_is_blamed_with_its_lateness(job: str, what: str) -> None:
    # A host or loader must be slower by more than the step to be late: the device has a step in hand.
    late_ms = LATE_MS[job] if what == "compute_ms" else 80.0
    rank = 1 + 2 * EVEN.index(job)
    truth = simulated(job, (rank, what, late_ms))
    for seed in (10, 11):
        trace_set, found = judged(disturbed(truth, seed))
        assert_late(truth, found, [rank], trace_set.steps)
        assert found.stragglers[0].cause == what.removesuffix("_ms")


@pytest.mark.parametrize("late_ns", [500 * US, 2 * MS, 5 * MS])
@pytest.mark.parametrize("seed", range(2))
def test_a_rank_late_at_every_exchange(late_ns: int, seed: int) -> None:
    # 8 ranks on 8 hosts, 3 exchanges in each of 3 steps.
    job = lockstep(
        lambda rank, step, at: 5 * MS + (late_ns if rank == 6 else 0), ranks=8, steps=3, start_ns=MS * 100
    )
    _, found = judged(ragged(skewed(job, skews_ns(job, seed, per_rank=True)), seed, SPREAD_NS))
    (entry,) = found.stragglers
    assert (entry.ranks, entry.last_share) == ([6], 1.0)
    assert entry.lateness_ns.expected == pytest.approx(late_ns, abs=SPREAD_NS)
    assert entry.ceiling_ns == pytest.approx(3 * late_ns, abs=3 * SPREAD_NS)


@pytest.mark.parametrize("pair", [(0, 1), (2, 5)], ids=["one-node", "two-nodes"])
@pytest.mark.parametrize("job", EVEN)
def test_two_ranks_late_together_are_one_entry(job: str, pair: tuple[int, int]) -> None:
    # Also with 2D parallelism, where ranks 2 and 5 never meet: mending one of them alone frees nothing.
    truth = simulated(job, *((rank, "compute_ms", 2 * LATE_MS[job]) for rank in pair))
    trace_set, found = judged(disturbed(truth, 20))
    assert_late(truth, found, list(pair), trace_set.steps)


def test_owners_of_large_tables_are_late_together() -> None:
    truth = simulated("a100_uneven")  # two tables, on ranks 0 and 1
    trace_set, found = judged(disturbed(truth, 30), truth.manifest)
    assert_late(truth, found, [0, 1], trace_set.steps)
    assert found.stragglers[0].cause == "compute"


class TestMissingRanks:
    @pytest.mark.parametrize("absent", [(0,), (2, 7), (1, 3, 6)], ids=str)
    @pytest.mark.parametrize("job", EVEN)
    def test_the_late_rank_is_found_among_the_rest(self, job: str, absent: tuple[int, ...]) -> None:
        truth = simulated(job, (5, "compute_ms", 2 * LATE_MS[job]))
        trace_set, found = judged(without_ranks(disturbed(truth, 40), *absent))
        assert trace_set.missing_ranks == absent
        assert_late(truth, found, [5], trace_set.steps)

    @pytest.mark.parametrize("others", [(), (0,), (4, 6)], ids=str)
    @pytest.mark.parametrize("job", EVEN)
    def test_nobody_is_blamed_for_a_late_rank_without_a_file(self, job: str, others: tuple[int, ...]) -> None:
        # With 2D parallelism its block comes late to the replica sync, and only because of it.
        truth = simulated(job, (5, "compute_ms", 2 * LATE_MS[job]))
        _, found = judged(without_ranks(disturbed(truth, 41), 5, *others))
        assert found.stragglers == ()
        assert found.not_judged is not None

    def test_what_cannot_be_told_is_said(self) -> None:
        truth = simulated("a100_2d", (5, "compute_ms", 3.0))
        diagnosis = diagnosed(without_ranks(disturbed(truth, 42), 5))
        (open_question,) = [one for one in diagnosis.not_judged if one.rule == "straggler"]
        assert "ranks 4, 6, 7 come late" in open_question.reason
        assert "the part of another rank is missing" in open_question.reason
        assert diagnosis.run.missing_ranks == [5]
        assert "straggler" not in [one.rule for one in [*diagnosis.findings, *diagnosis.clean]]


class TestLostKernels:
    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("job", EVEN)
    def test_some_on_some_ranks(self, job: str, seed: int) -> None:
        truth = simulated(job, (5, "compute_ms", 2 * LATE_MS[job]))
        draw = np.random.default_rng(seed)
        hit = draw.choice(truth.world, 1 + 2 * seed, replace=False)
        shares = {int(rank): float(draw.uniform(0.01, 0.05)) for rank in hit}
        trace_set, found = judged(losing(disturbed(truth, 50 + seed), seed, shares))
        assert_late(truth, found, [5], trace_set.steps)

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("job", EVEN)
    def test_on_a_healthy_job(self, job: str, seed: int) -> None:
        truth = simulated(job)
        shares = dict.fromkeys(range(truth.world), 0.03)
        _, found = judged(losing(disturbed(truth, 60 + seed), seed, shares))
        assert found.stragglers == ()

    @pytest.mark.parametrize("arguments", [True, False])
    @pytest.mark.parametrize("rank", [5, 6], ids=["of-the-late-rank", "of-another"])
    @pytest.mark.parametrize("which", range(11, 21))
    def test_one_collective_on_one_rank(self, rank: int, which: int, arguments: bool) -> None:
        # Each collective of a step in turn.
        truth = simulated("a100_2x4", (5, "compute_ms", 3.0))
        recordings = without_collective(disturbed(truth, 70), rank, which)
        trace_set, found = judged(recordings if arguments else without_arguments(recordings))
        assert_late(truth, found, [5], trace_set.steps)
        unmatched = [
            one.absent_ranks
            for one in trace_set.collectives
            if one.absent_ranks and one.step in trace_set.steps
        ]
        assert unmatched == [(rank,)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("job", EVEN)
def test_all_of_it_together(job: str, seed: int) -> None:
    draw = np.random.default_rng(seed)
    rank = int(draw.integers(8))
    truth = simulated(job, (rank, "compute_ms", 2 * LATE_MS[job]))
    others = [one for one in range(truth.world) if one != rank]
    absent = draw.choice(others, 1 + seed % 2, replace=False).tolist()
    shares = dict.fromkeys(draw.choice(others, 3, replace=False).tolist(), 0.02)
    recordings = losing(disturbed(truth, 80 + seed), seed, shares)
    recordings = without_collective(recordings, others[seed], 12)
    trace_set, found = judged(without_ranks(recordings, *absent))
    assert_late(truth, found, [rank], trace_set.steps)
    _, found = judged(without_ranks(recordings, *absent, rank))
    assert found.stragglers == ()


def test_groups_that_nothing_names_are_not_guessed() -> None:
    # 2D without collective arguments, as on gloo: who met whom is in the configuration, but not when.
    truth = simulated("a100_2d", (5, "compute_ms", 3.0))
    diagnosis = diagnosed(without_arguments(disturbed(truth, 90)))
    assert diagnosis.stragglers == []
    assert "nameless-collectives" in [note.code for note in diagnosis.data_quality]
    (open_question,) = [one for one in diagnosis.not_judged if one.rule == "straggler"]
    assert "could be matched across ranks" in open_question.reason


def diagnosed(recordings: list[Recording]) -> Diagnosis:
    return diagnose(Loaded(assemble(recordings), ()))
