"""Who is late, by how much, and what mending it would free, on lock-step jobs: all by addition."""

from collections.abc import Callable

import pytest

from tests.analyses.trace_sets import stragglers_of
from tests.trace.recordings import (
    ALL_TO_ALL,
    GEMM,
    LEAD_NS,
    MS,
    TAIL_NS,
    TRANSFER_NS,
    US,
    kernel,
    launched,
    lockstep,
    recording,
    step,
)
from traceinsight.diagnosis import Straggler
from traceinsight.trace.recording import Recording

Own = Callable[[int, int, int], int]


def only(own_ns: Own, **options: object) -> Straggler:
    judgement = stragglers_of(lockstep(own_ns, **options))  # type: ignore[arg-type]
    assert judgement.not_judged is None
    (found,) = judgement.stragglers
    return found


def late(by_rank: dict[int, int]) -> Own:
    """Everybody computes 5 ms before each exchange, some ranks longer."""
    return lambda rank, step, at: 5 * MS + by_rank.get(rank, 0)


def test_one_rank_late_at_every_exchange() -> None:
    found = only(late({2: 2 * MS}))
    assert found.ranks == [2]
    assert found.last_share == 1.0
    assert found.lateness_ns.low == found.lateness_ns.expected == found.lateness_ns.high == 2 * MS
    assert found.ceiling_ns == 3 * 2 * MS  # new lateness at each of three exchanges
    assert found.behind_median_ns == 2 * MS
    assert (found.cause, found.persistence, found.confidence) == ("compute", "persistent", "high")
    assert (found.steps_late, found.steps_judged) == (5, 5)


@pytest.mark.parametrize("ahead_ms", [5, -5])
def test_a_clock_that_is_ahead_blames_nobody(ahead_ms: int) -> None:
    assert stragglers_of(lockstep(late({}), ahead_ns={1: ahead_ms * MS})).stragglers == ()


def test_lateness_is_found_through_a_wrong_clock() -> None:
    found = only(late({2: 2 * MS}), ahead_ns={2: -5 * MS, 0: 3 * MS})
    assert (found.ranks, found.lateness_ns.expected) == ([2], 2 * MS)


def test_the_ceiling_ends_at_the_next_rank() -> None:
    # Rank 2 is 3 ms late, rank 1 by 1 ms of them: mending rank 2 frees 2 ms at each of three exchanges.
    first = stragglers_of(lockstep(late({2: 3 * MS, 1: MS}))).stragglers[0]
    assert first.ranks == [2]
    assert first.lateness_ns.expected == 2 * MS
    assert first.ceiling_ns == 3 * 2 * MS
    assert first.behind_median_ns == pytest.approx(3 * MS - MS / 2)  # median of 0, 0, 1, 3 ms is 0.5 ms


def test_ranks_that_come_late_together_are_one_entry() -> None:
    found = only(late({1: 2 * MS, 3: 2 * MS + 100 * US}), ranks=6)
    assert found.ranks == [1, 3]
    assert found.lateness_ns.expected == 2 * MS + 100 * US
    assert "Mending rank 3 alone frees at most about 300 us" in found.detail  # 3 exchanges of 0.1 ms


def test_two_ranks_late_at_different_exchanges_are_two_entries() -> None:
    def own(rank: int, step: int, at: int) -> int:
        return 5 * MS + {(1, 0): 4 * MS, (2, 2): 2 * MS}.get((rank, at), 0)

    first, second = stragglers_of(lockstep(own)).stragglers
    assert (first.ranks, first.ceiling_ns) == ([1], 4 * MS)
    assert (second.ranks, second.ceiling_ns) == ([2], 2 * MS)
    assert first.last_share == pytest.approx(1 / 3)  # last at one exchange in three


def test_one_late_step_in_five_is_chance() -> None:
    def own(rank: int, step: int, at: int) -> int:
        return 5 * MS + (3 * MS if (rank, step) == (2, 3) else 0)

    assert stragglers_of(lockstep(own)).stragglers == ()


@pytest.mark.parametrize(
    ("late_steps", "persistence", "ceiling_ns"),
    # 2 ms at each of three exchanges: 6 ms in a late step. What comes and goes costs its mean, 2/5 of that.
    [(2, "transient", 12 * MS // 5), (3, "persistent", 6 * MS)],
)
def test_three_late_steps_of_five_are_persistent_and_two_transient(
    late_steps: int, persistence: str, ceiling_ns: int
) -> None:
    def own(rank: int, step: int, at: int) -> int:
        return 5 * MS + (2 * MS if rank == 2 and step >= 5 - late_steps else 0)

    (found,) = stragglers_of(lockstep(own)).stragglers
    assert (found.ranks, found.steps_late, found.persistence) == ([2], late_steps, persistence)
    assert found.ceiling_ns == pytest.approx(ceiling_ns, rel=0.01)


def test_one_captured_step_gives_low_confidence() -> None:
    found = only(late({2: 2 * MS}), steps=1)
    assert (found.confidence, found.persistence, found.steps_judged) == ("low", "unknown", 1)


def test_two_captured_steps_give_medium_confidence() -> None:
    assert only(late({2: 2 * MS}), steps=2).confidence == "medium"


@pytest.mark.parametrize(("late_us", "established"), [(150, True), (80, False)])
def test_below_two_percent_of_a_step_nobody_is_blamed(late_us: int, established: bool) -> None:
    # A step takes about 15.3 ms, 2 % of it are 0.31 ms; three exchanges free 0.45 or 0.24 ms.
    step_ns = LEAD_NS + 3 * (5 * MS + TRANSFER_NS) + TAIL_NS
    assert 3 * 80 * US < 0.02 * step_ns < 3 * 150 * US
    assert bool(stragglers_of(lockstep(late({2: late_us * US}))).stragglers) is established


def noise(size_ns: int) -> Own:
    """All ends are recorded late by ``size_ns``, rank 2's by that more or less in turn."""
    return lambda rank, step, at: size_ns * (1 if rank != 2 else 2 * (at % 2))


@pytest.mark.parametrize(("noise_us", "established"), [(0, True), (300, True), (500, False)])
def test_lateness_within_the_clock_error_is_withheld(noise_us: int, established: bool) -> None:
    # Rank 2's ends lie 0, 300 or 500 us from the others': that is the residual, the lateness is 400 us.
    jobs = lockstep(late({2: 400 * US}), end_error_ns=noise(noise_us * US), collectives=4)
    assert bool(stragglers_of(jobs).stragglers) is established


def test_lateness_well_beyond_the_clock_error_is_not() -> None:
    found = only(late({2: 2 * MS}), end_error_ns=noise(20 * US), collectives=4)
    assert found.ranks == [2]
    assert found.lateness_ns.expected == pytest.approx(2 * MS, abs=20 * US)


def test_most_ranks_cannot_be_late() -> None:
    # Three of four come 2 ms after rank 0: rank 0 is early, and no one rank among them is worse.
    assert stragglers_of(lockstep(late({1: 2 * MS, 2: 2 * MS, 3: 2 * MS}))).stragglers == ()


def test_a_single_rank_is_not_judged() -> None:
    judgement = stragglers_of(lockstep(late({}))[:1])
    assert judgement.stragglers == ()
    assert judgement.not_judged is not None


def test_with_most_ranks_absent_nobody_is_blamed() -> None:
    # Ranks 0 and 2 of eight: the late one may be among the other six.
    everybody = lockstep(late({2: 2 * MS}), ranks=8)
    judgement = stragglers_of([everybody[0], everybody[2]])
    assert judgement.stragglers == ()
    assert judgement.not_judged is not None
    assert "6 of 8 ranks" in judgement.not_judged


def test_with_one_rank_absent_the_rest_is_judged() -> None:
    everybody = lockstep(late({2: 2 * MS}), ranks=5)
    (found,) = stragglers_of(everybody[:4]).stragglers
    assert (found.ranks, found.lateness_ns.expected) == ([2], 2 * MS)


def host_paced(lag_ns: int, *, tail_queued: bool, steps: int = 3) -> list[Recording]:
    """Hosts that launch a piece of 1 ms every 4 ms; rank 3's host trails by ``lag_ns`` all step long.

    Nothing is queued behind the first two exchanges when they end. Behind the third the tail is, or its
    launch comes another 4 ms later.
    """
    rows: dict[int, list[object]] = {rank: [] for rank in range(4)}
    for number in range(steps):
        begin = 16 * MS * number
        for rank, own in rows.items():
            own.append(step(number, begin, begin + 16 * MS))
            lag = lag_ns if rank == 3 else 0
            for at in range(3):
                call, key = begin + 4 * MS * at + lag, 100 * number + 10 * at
                arrival = call + 5 * US + MS
                end = begin + 4 * MS * at + lag_ns + 5 * US + MS + TRANSFER_NS
                own.append(launched(kernel(GEMM, call + 5 * US, arrival, key + 1), call))
                own.append(launched(kernel(ALL_TO_ALL, arrival, end, key + 2, stream=20), call + 2 * US))
            call = begin + 8 * MS + lag + 4 * US if tail_queued else begin + 12 * MS + lag
            start = max(end, call + 5 * US)
            own.append(launched(kernel(GEMM, start, start + TAIL_NS, 100 * number + 99), call))
    return [recording(own, rank=rank, world_size=4, shift_ns=MS) for rank, own in rows.items()]


def test_host_lag_that_carries_over_is_freed_once() -> None:
    # Rank 3 comes 2 ms late to each of three exchanges, but only behind the third was work queued.
    (found,) = stragglers_of(host_paced(2 * MS, tail_queued=True)).stragglers
    assert (found.ranks, found.lateness_ns.expected) == ([3], 2 * MS)
    assert found.ceiling_ns == 2 * MS


def test_waits_that_hold_nobody_up_free_nothing() -> None:
    assert stragglers_of(host_paced(2 * MS, tail_queued=False)).stragglers == ()
