"""The interval of a shift, against the enumeration of all orders and textbook values."""

from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceinsight.base.shift import CONFIDENCE, EXACT_UP_TO, MOST_SAMPLES, _cut, _rank_sums, shift_interval

SAMPLES = st.lists(st.integers(0, 10**12), min_size=1, max_size=7)


@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 5), (2, 3), (3, 3), (4, 5), (5, 5), (3, 7)])
def test_rank_sums_are_those_of_all_orders(n: int, m: int) -> None:
    counted = [0] * (n * m + 1)
    for places in combinations(range(n + m), n):  # where the n values stand among all
        counted[sum(place - index for index, place in enumerate(places))] += 1
    assert list(_rank_sums(n, m)) == counted


@pytest.mark.parametrize(
    ("n", "m", "cut", "coverage"),
    [
        (5, 5, 2, 1 - 2 * 4 / comb(10, 5)),  # critical U of the two-sided test at 5 %: 2
        (4, 4, 0, 1 - 2 / comb(8, 4)),
        (6, 6, 5, 1 - 2 * 19 / comb(12, 6)),
        (3, 3, 0, 0.9),  # 95 % cannot be had from 3 and 3
        (2, 2, 0, 1 - 2 / 6),
        (1, 1, 0, 0.0),
    ],
)
def test_as_many_are_cut_as_the_tables_say(n: int, m: int, cut: int, coverage: float) -> None:
    assert _cut(n, m) == (cut, pytest.approx(coverage))


def test_an_interval_by_hand() -> None:
    # 5 and 5 values: 25 differences, the third from either end.
    before, after = [0, 1, 2, 3, 4], [100, 110, 120, 130, 140]
    differences = sorted(a - b for a in after for b in before)
    found = shift_interval(before, after)
    assert (found.low, found.high) == (differences[2], differences[-3]) == (98, 138)


def test_one_odd_sample_moves_it_little() -> None:
    steady = shift_interval([100, 101, 102, 103, 104], [110, 111, 112, 113, 114])
    odd = shift_interval([100, 101, 102, 103, 104], [110, 111, 112, 113, 900])
    assert odd.low >= steady.low
    assert odd.high < 900 - 100


@given(SAMPLES, SAMPLES)
def test_exchanged_samples_give_the_mirrored_interval(before: list[int], after: list[int]) -> None:
    one, other = shift_interval(before, after), shift_interval(after, before)
    assert (one.low, one.high, one.coverage) == (-other.high, -other.low, other.coverage)


@given(SAMPLES)
def test_a_sample_against_itself_holds_no_shift(samples: list[int]) -> None:
    found = shift_interval(samples, samples)
    assert found.low <= 0 <= found.high


def test_many_samples_keep_the_confidence_and_bound_the_memory() -> None:
    exact, approximate = _cut(EXACT_UP_TO, EXACT_UP_TO)[0], _cut(EXACT_UP_TO, EXACT_UP_TO + 1)[0]
    assert exact <= approximate + 1 <= exact + EXACT_UP_TO
    assert _cut(50, 50)[1] == CONFIDENCE
    many = list(range(50 * MOST_SAMPLES))
    found = shift_interval(many, [value + 7 for value in many])
    assert found.low < 7 < found.high


def test_no_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="no samples"):
        shift_interval([], [1])


@pytest.mark.parametrize(("n", "m"), [(3, 3), (4, 4), (5, 5), (4, 7), (60, 60)])
def test_the_interval_holds_the_true_shift_as_often_as_it_says(n: int, m: int) -> None:
    """2,000 draws with heavy tails and a shift of 10; three standard errors of so many draws are allowed."""
    random, draws, shift = np.random.default_rng(7), 2_000, 10.0
    held = 0
    for _ in range(draws):
        found = shift_interval(random.standard_t(2, n), random.standard_t(2, m) + shift)
        held += found.low <= shift <= found.high
    coverage = _cut(n, m)[1]
    assert held / draws == pytest.approx(coverage, abs=3 * (coverage * (1 - coverage) / draws) ** 0.5)
