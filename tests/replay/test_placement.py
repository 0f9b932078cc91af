"""Placements against arithmetic, and against every placement there is."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceinsight.replay.placement import per_rank, place


def test_the_most_expensive_piece_comes_first_to_the_least_loaded_rank() -> None:
    """3 | 3, then 2 | 2, then the last 2: 7 and 5, mean 6. Best were 3+3 and 2+2+2 (Graham's example)."""
    found = place([2, 2, 2, 3, 3], [0, 0, 0, 0, 0], [0, 1])
    assert found.before == 2
    assert found.after == pytest.approx(7 / 6)
    assert sorted(per_rank([2, 2, 2, 3, 3], found.owners, [0, 1]).values()) == [5, 7]


def test_one_large_piece_bounds_what_placing_can_reach() -> None:
    found = place([9, 1, 1, 1], [0, 0, 1, 2], [0, 1, 2])
    assert (found.before, found.after) == (10 / 4, 9 / 4)
    assert found.owners[0] == 0
    assert found.moved >= 1


def test_todays_placement_stays_where_nothing_is_gained() -> None:
    """3+3 and 2+2+2 is even; the heuristic alone would make it 7 and 5."""
    assert place([3, 3, 2, 2, 2], [0, 0, 1, 1, 1], [0, 1]).moved == 0
    assert place([0.0, 0.0], [1, 1], [0, 1]).before == 1.0


def test_of_equal_pieces_no_more_than_needed_move() -> None:
    assert place([2, 2, 2, 2], [0, 0, 0, 1], [0, 1]).moved == 1
    assert place([6, 2, 2, 2, 2], [0, 0, 1, 2, 3], [0, 1, 2, 3]).moved == 1


def test_what_cannot_move_stays() -> None:
    """4 on rank 0 is fixed: the free 3 and 1 go to rank 1."""
    found = place([4, 3, 1], [0, 0, 0], [0, 1], [False, True, True])
    assert found.owners == (0, 1, 1)
    assert (found.before, found.after) == (2, 1)


@pytest.mark.parametrize(("owners", "ranks"), [([0], []), ([2], [0, 1]), ([0, 1], [0, 1])])
def test_pieces_and_ranks_must_fit(owners: list[int], ranks: list[int]) -> None:
    with pytest.raises(ValueError, match="owner among the ranks"):
        place([1.0], owners, ranks)


@given(st.lists(st.integers(0, 50), min_size=1, max_size=6), st.integers(1, 3), st.data())
def test_never_worse_than_today_and_near_the_best(costs: list[int], count: int, data: st.DataObject) -> None:
    ranks = list(range(count))
    owners = data.draw(st.lists(st.sampled_from(ranks), min_size=len(costs), max_size=len(costs)))
    found = place(costs, owners, ranks)
    busiest = max(per_rank(costs, found.owners, ranks).values())
    best = min(max(per_rank(costs, one, ranks).values()) for one in product(ranks, repeat=len(costs)))
    assert busiest <= max(per_rank(costs, owners, ranks).values())
    assert busiest <= (4 / 3 - 1 / (3 * count)) * best + 1e-9
