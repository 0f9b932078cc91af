"""Interval algebra against the plainest oracle there is: the set of all nanoseconds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from traceinsight.base import intervals
from traceinsight.base.intervals import Spans

EPOCH = 1_700_000_000_000_000_000  # needs more digits than a float64 has
Pairs = list[tuple[int, int]]

pairs = st.lists(st.tuples(st.integers(-3, 40), st.integers(-2, 12)), max_size=8).map(
    lambda found: [(EPOCH + start, EPOCH + start + length) for start, length in found]
)


def spans(found: Pairs) -> Spans:
    array = np.array(found, dtype=np.int64).reshape(-1, 2)
    return intervals.union(array[:, 0], array[:, 1])


def moments(found: Pairs) -> set[int]:
    return {moment for start, end in found for moment in range(start, end)}


def covered(found: Spans) -> set[int]:
    return moments([(start, end) for start, end in found.tolist()])


def assert_canonical(found: Spans) -> None:
    """Sorted, disjoint, none touching, none empty: all boundaries increase strictly."""
    assert found.dtype == np.int64
    assert (np.diff(found.ravel()) > 0).all()


@given(pairs)
def test_union_covers_what_any_interval_covers(a: Pairs) -> None:
    assert_canonical(spans(a))
    assert covered(spans(a)) == moments(a)
    assert intervals.measure(spans(a)) == len(moments(a))


@given(pairs, pairs)
def test_set_operations_are_those_of_sets(a: Pairs, b: Pairs) -> None:
    for operation, expected in (
        (intervals.intersect, moments(a) & moments(b)),
        (intervals.subtract, moments(a) - moments(b)),
        (intervals.add, moments(a) | moments(b)),
    ):
        found = operation(spans(a), spans(b))
        assert_canonical(found)
        assert covered(found) == expected


@given(pairs, pairs)
def test_a_set_is_its_part_in_another_and_the_rest(a: Pairs, b: Pairs) -> None:
    inside, outside = intervals.intersect(spans(a), spans(b)), intervals.subtract(spans(a), spans(b))
    assert intervals.measure(spans(a)) == intervals.measure(inside) + intervals.measure(outside)
    assert intervals.add(inside, outside).tolist() == spans(a).tolist()


@given(pairs, st.integers(-5, 60), st.integers(1, 60))
def test_clip_is_the_part_inside_a_window(a: Pairs, start: int, length: int) -> None:
    window = set(range(EPOCH + start, EPOCH + start + length))
    clipped = intervals.clip(spans(a), EPOCH + start, EPOCH + start + length)
    assert_canonical(clipped)
    assert covered(clipped) == moments(a) & window


@given(pairs, st.lists(st.integers(-5, 60), max_size=5))
def test_moments_in_and_before(a: Pairs, offsets: list[int]) -> None:
    times: NDArray[np.int64] = np.array([EPOCH + offset for offset in offsets], dtype=np.int64)
    inside = moments(a)
    assert intervals.contains(spans(a), times).tolist() == [time in inside for time in times.tolist()]
    before = [sum(moment < time for moment in inside) for time in times.tolist()]
    assert intervals.covered_before(spans(a), times).tolist() == before


def test_half_open_intervals_that_touch_become_one() -> None:
    assert spans([(0, 5), (5, 9), (10, 12)]).tolist() == [[0, 9], [10, 12]]
    assert intervals.contains(spans([(0, 5)]), np.array([0, 4, 5])).tolist() == [True, True, False]


def test_an_interval_without_length_is_no_time() -> None:
    assert intervals.single(5, 5).tolist() == []
    assert intervals.single(5, 4).tolist() == []
    assert intervals.single(5, 6).tolist() == [[5, 6]]


def test_clipping_to_no_length_is_empty() -> None:
    assert intervals.clip(intervals.single(0, 10), 5, 5).tolist() == []
