"""What must not hide a straggler, and what must not be called its cause."""

from dataclasses import replace

import numpy as np
import pytest

from tests.analyses.test_stragglers import late
from tests.analyses.trace_sets import stragglers_of
from tests.disturb import without_events
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
from traceinsight.analyses.communication import collectives
from traceinsight.analyses.stragglers.cause import cause_of
from traceinsight.diagnosis import Partition
from traceinsight.trace.assemble import assemble
from traceinsight.trace.recording import CommArgs, Recording

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def test_a_transient_rank_does_not_hide_a_persistent_one() -> None:
    # Rank 1: 14 ms late once in five steps. Rank 2: 0.8 ms late at each of 15 exchanges, 12 ms in all.
    def own(rank: int, step_number: int, at: int) -> int:
        once = 14 * MS if (rank, step_number, at) == (1, 3, 0) else 0
        return 5 * MS + once + (800 * US if rank == 2 else 0)

    assert [one.ranks for one in stragglers_of(lockstep(own)).stragglers] == [[2]]


def two_worlds(ahead_ns: int) -> list[Recording]:
    """Ranks 0, 1 and ranks 2, 3 never meet; rank 3's clock runs ahead."""
    first, second = (CommArgs(collective="all_to_allv", group_ranks=ranks) for ranks in ((0, 1), (2, 3)))
    one = lockstep(late({}), ranks=2, args=first)
    other = lockstep(late({}), ranks=2, args=second, ahead_ns={1: ahead_ns})
    both = one + [replace(each, rank=(each.rank or 0) + 2, _cache={}) for each in other]
    return [replace(each, world_size=4, _cache={}) for each in both]


@pytest.mark.parametrize("ahead_ns", [0, 5 * MS])
def test_a_clock_ahead_in_a_world_of_its_own_blames_nobody_and_makes_nobody_wait(ahead_ns: int) -> None:
    assert stragglers_of(two_worlds(ahead_ns)).stragglers == ()
    found = [one for one in collectives(assemble(two_worlds(ahead_ns))) if one.ranks == [2, 3]]
    assert found
    assert all(max(one.wait_ns.values()) == 0 for one in found)


def row(rank: int, compute_ns: int, **idle: int) -> Partition:
    busy = compute_ns + sum(idle.values())
    return Partition(
        rank=rank, step=0, window_ns=10 * MS, compute_ns=compute_ns, exposed_comm_transfer_ns=0,
        exposed_comm_wait_ns=10 * MS - busy, exposed_comm_unsplit_ns=0, exposed_copy_ns=0,
        idle_ns=sum(idle.values()), idle_by_cause_ns=idle,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("more_ns", "cause"), [(US, "unknown"), (2 * MS - US, "unknown"), (2 * MS, "compute")]
)
def test_a_cause_explains_at_least_half_of_what_the_group_costs(more_ns: int, cause: str) -> None:
    # Rank 0 costs 4 ms per step, so 2 ms of its own are enough to name a cause.
    rows = [row(0, 5 * MS + more_ns, dependency=MS), *(row(rank, 5 * MS) for rank in (1, 2, 3))]
    assert cause_of([0], rows, 4 * MS)[0] == cause


def job_2d(*, world_sync: bool) -> list[Recording]:
    """8 ranks, exchanges in blocks of 4, replica sync across blocks; rank 5 is 2 ms late at the exchange."""
    size = 8
    blocks, columns = [tuple(range(0, 4)), tuple(range(4, 8))], [(at, at + 4) for at in range(4)]
    rounds = [("all_to_allv", ALL_TO_ALL, blocks, 5 * MS), ("allreduce", ALL_REDUCE, columns, MS)]
    if world_sync:
        rounds.append(("allreduce", ALL_REDUCE, [tuple(range(size))], MS))
    rows: dict[int, list[object]] = {rank: [] for rank in range(size)}
    begin = 0
    for number in range(5):
        now = dict.fromkeys(rows, begin + LEAD_NS)
        for turn, (operation, name, groups, own_ns) in enumerate(rounds):
            for group in groups:
                came = {
                    rank: now[rank] + own_ns + (2 * MS if rank == 5 and turn == 0 else 0) for rank in group
                }
                end = max(came.values()) + TRANSFER_NS
                args = CommArgs(collective=operation, group_ranks=group)
                for rank in group:
                    key, host = 1000 * number + 2 * turn, begin + 2 * turn * US
                    rows[rank].append(launched(kernel(GEMM, now[rank], came[rank], key), host))
                    met = kernel(name, came[rank], end, key + 1, stream=20, args=args)
                    rows[rank].append(launched(met, host + US))
                    now[rank] = end
        end = max(now.values()) + TAIL_NS
        for rank, mine in rows.items():
            tail = kernel(GEMM, now[rank], now[rank] + TAIL_NS, 1000 * number + 999)
            mine += [launched(tail, begin + 50 * US), step(number, begin, end)]
        begin = end
    return [
        recording(*mine, rank=rank, world_size=size, backend="nccl", shift_ns=MS)
        for rank, mine in rows.items()
    ]


@pytest.mark.parametrize("world_sync", [False, True])
def test_the_late_rank_of_a_2d_job_is_found_and_those_it_held_up_are_not_blamed(world_sync: bool) -> None:
    # Only its block waits for rank 5 directly; the other block waits for that block at the replica sync.
    (straggler,) = stragglers_of(job_2d(world_sync=world_sync)).stragglers
    assert straggler.ranks == [5]
    assert straggler.ceiling_ns == pytest.approx(2 * MS, rel=0.01)


def exchange_2d(lost: dict[int, set[int]], absent: tuple[int, ...] = ()) -> list[Recording]:
    """The 2D job without files of the absent ranks; rank -> which of its five exchanges it lost."""
    job = [one for one in job_2d(world_sync=False) if one.rank not in absent]
    for place, one in enumerate(job):
        exchanges = np.flatnonzero([one.name_of(event) == ALL_TO_ALL for event in range(len(one.events))])
        gone = [int(exchanges[at]) for at in lost.get(one.rank or 0, ())]
        job[place] = without_events(one, gone)
    return job


def test_a_rank_held_up_by_an_absent_one_is_not_blamed_for_it() -> None:
    judgement = stragglers_of(exchange_2d({}, absent=(5,)))
    assert judgement.stragglers == ()
    assert judgement.not_judged is not None
    assert "ranks 4, 6, 7 come late" in judgement.not_judged


def test_a_rank_held_up_by_the_late_one_is_not_blamed_with_it() -> None:
    # Of the block only ranks 5 and 7 are left: both are 2 ms late at the replica sync.
    (straggler,) = stragglers_of(exchange_2d({}, absent=(4, 6))).stragglers
    assert straggler.ranks == [5]


def test_a_rank_whose_own_part_is_lost_does_not_bound_what_is_freed() -> None:
    # Rank 6 lost every exchange that rank 5 made the others wait in.
    (straggler,) = stragglers_of(exchange_2d({6: set(range(5))})).stragglers
    assert straggler.ranks == [5]
    assert straggler.ceiling_ns == pytest.approx(2 * MS, rel=0.01)


def test_a_step_in_which_the_late_part_is_lost_says_nothing_for_or_against() -> None:
    (straggler,) = stragglers_of(exchange_2d({5: {1, 3}})).stragglers
    assert (straggler.ranks, straggler.steps_late, straggler.steps_judged) == ([5], 3, 3)
    assert straggler.persistence == "persistent"


def test_lateness_of_a_lost_part_is_not_laid_on_those_who_waited() -> None:
    # The block of rank 5 comes late to the replica sync, after an exchange without rank 5's part.
    judgement = stragglers_of(exchange_2d({5: {0, 1, 2, 3, 4}}))
    assert judgement.stragglers == ()
    assert judgement.not_judged is not None
