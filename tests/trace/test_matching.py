"""Which kernels on different ranks are the same collective."""

import random
from collections.abc import Iterable, Sequence

import pytest

from traceinsight.trace.matching import Match, match_collectives
from traceinsight.trace.rank_trace import RankCollective

US, MS = 1_000, 1_000_000
EPOCH = 1_700_000_000_000_000_000


def ends(count: int = 12, seed: int = 1) -> list[int]:
    """True ends of a step's collectives: 2 to 9 ms apart, no two distances alike."""
    generator = random.Random(seed)
    moment, found = EPOCH, []
    for _ in range(count):
        moment += generator.randint(2 * MS, 9 * MS)
        found.append(moment)
    return found


def parts(
    true_ends: Sequence[int],
    *,
    without: Iterable[int] = (),
    ahead_ns: int = 0,
    operation: str = "all_to_all",
    group: tuple[int, ...] | None = None,
    sequences: bool = False,
    step: int = 0,
    label: str | None = None,
    payloads: Sequence[tuple[str | None, int | None]] = (),
) -> list[RankCollective]:
    """One rank's parts. ``event`` says which collective this truly is; ``payloads`` are types and bytes."""
    missing = set(without)
    return [
        RankCollective(
            lane=0, group_size=None,
            event=at, operation=operation, label=label, phase="forward", step=step,
            start_ns=end - 400 * US + ahead_ns, end_ns=end + ahead_ns, launch_ns=end - MS + ahead_ns,
            group=group, group_name=None, sequence=at if sequences else None,
            in_bytes=payloads[at][1] if payloads else None, out_bytes=None, in_split=None, out_split=None,
            dtype=payloads[at][0] if payloads else None,
        )
        for at, end in enumerate(true_ends)
        if at not in missing
    ]  # fmt: skip


def truth(match: Match) -> set[int]:
    return {part.event for part in match.parts.values()}


def assert_right(matches: Sequence[Match], count: int, missing: Iterable[tuple[int, int]] = ()) -> None:
    """``count`` collectives, no mixture of two, and only the (rank, index) dropped are not in them."""
    dropped: dict[int, set[int]] = {}
    for rank, index in missing:
        dropped.setdefault(index, set()).add(rank)
    everybody = set().union(*(match.parts for match in matches)) | {rank for rank, _ in missing}
    assert sorted(map(str, map(truth, matches))) == sorted(str({index}) for index in range(count))
    for match in matches:
        (index,) = truth(match)
        assert set(match.parts) == everybody - dropped.get(index, set())


@pytest.mark.parametrize("dropped", [0, 5, 11])
@pytest.mark.parametrize("ahead_ns", [0, 5 * MS, -40 * MS])
def test_one_kernel_dropped_shifts_no_other(dropped: int, ahead_ns: int) -> None:
    matches = match_collectives(
        {0: parts(ends()), 1: parts(ends(), without=[dropped], ahead_ns=ahead_ns), 2: parts(ends())}
    )
    assert_right(matches, 12, [(1, dropped)])


def test_kernels_dropped_on_several_ranks() -> None:
    gone = {0: [3], 1: [0, 7], 2: [11], 3: []}
    clocks = {0: 0, 1: 3 * MS, 2: -8 * MS, 3: 700 * US}
    matches = match_collectives(
        {rank: parts(ends(), without=lost, ahead_ns=clocks[rank]) for rank, lost in gone.items()}
    )
    assert_right(matches, 12, [(rank, index) for rank, lost in gone.items() for index in lost])


def test_equal_counts_that_are_shifted_by_one() -> None:
    # Rank 0 lost its first kernel and rank 1 its last: 11 each, and every pair by order would be wrong.
    matches = match_collectives({0: parts(ends(), without=[0]), 1: parts(ends(), without=[11])})
    assert [truth(match) for match in matches] == [{index} for index in range(12)]
    assert [set(match.parts) for match in matches] == [{1}, *[{0, 1}] * 10, {0}]


def test_sequence_numbers_decide_even_where_ends_disagree() -> None:
    # Rank 1's clock says that everything ended in another order of magnitude of time.
    matches = match_collectives(
        {
            0: parts(ends(), sequences=True),
            1: parts(ends(seed=2), sequences=True, without=[4], ahead_ns=500 * MS),
        }
    )
    assert_right(matches, 12, [(1, 4)])


def test_groups_of_a_2d_job_are_kept_apart() -> None:
    # 4 ranks: exchange in (0, 1) and (2, 3), replica sync in (0, 2) and (1, 3), all at nearly the same time.
    exchange, sync = (
        {0: (0, 1), 1: (0, 1), 2: (2, 3), 3: (2, 3)},
        {0: (0, 2), 1: (1, 3), 2: (0, 2), 3: (1, 3)},
    )
    matches = match_collectives(
        {
            rank: parts(ends(3), group=exchange[rank])
            + parts(ends(3), group=sync[rank], operation="all_reduce")
            for rank in range(4)
        }
    )
    found = sorted((match.operation, match.group, tuple(match.parts)) for match in matches)
    expected = [("all_reduce", group, group) for group in ((0, 2), (1, 3)) for _ in range(3)] + [
        ("all_to_all", group, group) for group in ((0, 1), (2, 3)) for _ in range(3)
    ]
    assert found == expected
    assert all(len(truth(match)) == 1 for match in matches)


def test_operations_labels_and_steps_are_kept_apart() -> None:
    both = [*parts(ends(4)), *parts(ends(4), operation="all_reduce"), *parts(ends(4), step=1, label="x")]
    matches = match_collectives({0: both, 1: both})
    assert len(matches) == 12
    assert all(len({(p.operation, p.step, p.label) for p in match.parts.values()}) == 1 for match in matches)


def test_what_nobody_else_recorded_stands_alone() -> None:
    matches = match_collectives({0: parts(ends(3)), 1: []})
    assert [set(match.parts) for match in matches] == [{0}, {0}, {0}]


def test_nothing_to_match_is_no_match() -> None:
    assert match_collectives({}) == []
    assert match_collectives({0: [], 1: []}) == []


def test_the_order_of_ranks_does_not_matter() -> None:
    by_rank = {0: parts(ends(), without=[2]), 1: parts(ends()), 2: parts(ends(), without=[9])}
    turned = dict(reversed(by_rank.items()))
    assert match_collectives(by_rank) == match_collectives(turned)


def close_together(count: int = 10) -> list[int]:
    """Ends 50 us apart: nearer than clocks and real ends agree, so order and payload must decide."""
    return [EPOCH + at * 50 * US for at in range(count)]


@pytest.mark.parametrize("what", ["type", "size"])
def test_payloads_decide_where_ends_are_too_close(what: str) -> None:
    # Rank 0 lost the second and rank 1 the eighth of ten: nine each, and ends fit in order within 50 us.
    types = ["Float" if at % 2 else "Half" for at in range(10)] if what == "type" else [None] * 10
    sizes = [1000 + at for at in range(10)] if what == "size" else [None] * 10
    payloads = list(zip(types, sizes, strict=True))
    gone = {0: [1], 1: [7]}
    matches = match_collectives(
        {
            rank: parts(close_together(), without=lost, operation="all_reduce", payloads=payloads)
            for rank, lost in gone.items()
        }
    )
    assert all(len(truth(match)) == 1 for match in matches)
    if what == "size":
        assert_right(matches, 10, [(0, 1), (1, 7)])


def test_members_of_an_all_to_all_may_send_different_amounts() -> None:
    matches = match_collectives(
        {rank: parts(ends(), payloads=[("Float", 100 * rank + at) for at in range(12)]) for rank in range(3)}
    )
    assert_right(matches, 12)


def test_what_the_longest_lacks_is_matched_among_the_others() -> None:
    # Each of four ranks lost another one of twelve: whichever is aligned with lacks one the others have.
    gone = {0: [2], 1: [5], 2: [8], 3: [10]}
    matches = match_collectives({rank: parts(ends(), without=lost) for rank, lost in gone.items()})
    assert_right(matches, 12, [(rank, index) for rank, lost in gone.items() for index in lost])


def test_one_pair_that_ends_far_apart_stays_a_pair() -> None:
    # Rank 1 leaves the fifth of twelve 3 ms late, as a busy host does: no other pairing fits better.
    late = ends()
    late[4] += 3 * MS
    assert_right(match_collectives({0: parts(ends()), 1: parts(late)}), 12)
