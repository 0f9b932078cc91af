"""Clock offsets from ends of collectives that no member can leave early."""

import pytest

from traceinsight.trace.clocks import ClockOffset, Meeting, estimate_offsets

US, MS = 1_000, 1_000_000
EPOCH = 1_700_000_000_123_456_789  # needs more digits than a float64 has


def meetings(
    ahead_ns: dict[int, int], count: int = 20, errors: dict[int, list[int]] | None = None
) -> list[Meeting]:
    """Collectives every 10 ms that end at once; each clock shows its own time."""
    ranks = tuple(sorted(ahead_ns))
    return [
        Meeting(
            ranks,
            tuple(
                EPOCH + at * 10 * MS + ahead_ns[rank] + (errors or {}).get(rank, [0] * count)[at]
                for rank in ranks
            ),
        )
        for at in range(count)
    ]


def offsets(found: dict[int, ClockOffset]) -> dict[int, int | None]:
    return {rank: clock.offset_ns for rank, clock in found.items()}


def test_the_one_clock_that_is_ahead_gets_the_whole_offset() -> None:
    found = estimate_offsets(range(4), meetings({0: 0, 1: 5 * MS, 2: 0, 3: 0}))
    assert offsets(found) == {0: 0, 1: 5 * MS, 2: 0, 3: 0}
    assert {clock.residual_ns for clock in found.values()} == {0}


def test_epoch_nanoseconds_lose_no_digit() -> None:
    found = estimate_offsets(range(3), meetings({0: 0, 1: 1, 2: -7}))
    assert offsets(found) == {0: 0, 1: 1, 2: -7}


def test_of_two_clocks_the_lower_rank_is_the_reference() -> None:
    assert offsets(estimate_offsets([3, 8], meetings({3: 4 * MS, 8: 9 * MS}))) == {3: 0, 8: 5 * MS}


def test_offsets_follow_a_chain_of_overlapping_groups() -> None:
    ahead = {0: 0, 1: 1 * MS, 2: 3 * MS, 3: 6 * MS}
    chain = [one for pair in ((0, 1), (1, 2), (2, 3)) for one in meetings({r: ahead[r] for r in pair})]
    found = estimate_offsets(range(4), chain)
    # Median of 0, 1, 3, 6 ms is 2 ms; ranks 1 and 2 are equally close, the lower one is the reference.
    assert offsets(found) == {0: -1 * MS, 1: 0, 2: 2 * MS, 3: 5 * MS}


def test_ranks_that_never_meet_the_others_have_a_reference_of_their_own() -> None:
    # 0 with 1 and 2 with 3 are tied, the pairs are not: each pair counts from its own lower rank.
    apart = meetings({0: 0, 1: 2 * MS}, count=20) + meetings({2: 0, 3: 7 * MS}, count=5)
    found = estimate_offsets(range(5), apart)
    assert offsets(found) == {0: 0, 1: 2 * MS, 2: 0, 3: 7 * MS, 4: None}
    assert found[4].residual_ns is None


def test_no_meeting_tells_nothing() -> None:
    assert estimate_offsets([0, 1], []) == {0: ClockOffset(0, None, None), 1: ClockOffset(1, None, None)}


@pytest.mark.parametrize("wild", [2, 9])
def test_a_minority_of_wrong_pairs_moves_nothing(wild: int) -> None:
    errors = {1: [500 * MS] * wild + [0] * (20 - wild)}
    assert offsets(estimate_offsets(range(3), meetings({0: 0, 1: 3 * MS, 2: 0}, errors=errors))) == {
        0: 0,
        1: 3 * MS,
        2: 0,
    }


def test_the_residual_is_what_nine_of_ten_ends_stay_within() -> None:
    # Rank 1 ends k us early or late in turn, k = 0..19: |error| has the 90 % quantile 0.9 * 19 us = 17.1 us.
    errors = {1: [k * US * (-1) ** k for k in range(20)]}
    found = estimate_offsets(range(4), meetings({0: 0, 1: 0, 2: 0, 3: 0}, errors=errors))
    residual = found[1].residual_ns
    offset = found[1].offset_ns
    assert residual is not None
    assert offset is not None
    # The errors 0, -1, 2, -3, ... have a median between 0 and -1 us, which the offset takes away.
    assert abs(offset) <= US
    assert residual == pytest.approx(17.1 * US, abs=1.1 * US)
    assert found[0].residual_ns == 0  # the other members agree with each other
