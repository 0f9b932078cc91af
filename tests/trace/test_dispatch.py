"""Runs of tiny operators are the host's time; a few of them, or long ones, are compute. Times in ns."""

from typing import Any

import pytest

from tests.analyses.trace_sets import one_rank, partition_of
from tests.trace.recordings import MS, US, mark, operator, step
from traceinsight.base import intervals
from traceinsight.trace.dispatch import MAX_GAP_NS, MIN_RUN, TINY_OPERATOR_NS, dispatch_spans

WINDOW_NS = 100 * MS


def tiny(count: int, length: int = 3 * US, gap: int = 2 * US, begin: int = MS) -> list[Any]:
    """Operators of one kind, one every ``length + gap``."""
    starts = [begin + at * (length + gap) for at in range(count)]
    return [operator("aten::add_", start, start + length) for start in starts]


def host_and_compute_ns(*rows: Any) -> tuple[int, int]:
    """(idle because of the host, compute) of a single step of 100 ms."""
    (row,) = partition_of(one_rank(step(0, 0, WINDOW_NS), *rows, backend="gloo"))
    return row.idle_by_cause_ns.get("host", 0), row.compute_ns


def test_a_run_is_host_time_with_its_gaps_and_the_rest_is_compute() -> None:
    # 1,000 x (3 + 2) us less the gap after the last = 4,998 us; a matrix product of 50 ms.
    host, compute = host_and_compute_ns(tiny(1000), operator("aten::mm", 20 * MS, 70 * MS))
    assert (host, compute) == (4_998 * US, 50 * MS)


@pytest.mark.parametrize(("count", "host"), [(MIN_RUN - 1, 0), (MIN_RUN, MIN_RUN * 5 * US - 2 * US)])
def test_fewer_than_a_run_are_compute(count: int, host: int) -> None:
    assert host_and_compute_ns(tiny(count)) == (host, 0 if host else count * 3 * US)


@pytest.mark.parametrize(("length", "is_host"), [(TINY_OPERATOR_NS - 1, True), (TINY_OPERATOR_NS, False)])
def test_operators_long_enough_to_compute_do(length: int, is_host: bool) -> None:
    assert (host_and_compute_ns(tiny(1000, length))[0] > 0) == is_host


def test_a_real_operator_between_ends_the_run() -> None:
    # 400 and 400 with a matrix product between: two runs too short to count.
    rows = [tiny(400), operator("aten::mm", 10 * MS, 11 * MS), tiny(400, begin=20 * MS)]
    assert host_and_compute_ns(rows) == (0, 2 * 400 * 3 * US + MS)


def test_an_interrupted_call_does_not_end_the_run() -> None:
    # The machine took 4 ms away from one call of 800: 400 before it, the call, 400 after.
    rows = [tiny(400), operator("aten::add_", 3 * MS, 7 * MS), tiny(400, begin=7 * MS + 2 * US)]
    # From 1 ms on without a gap that breaks it: 3 us of the last end at 7,002 + 400 x 5 - 2 = 9,000 us.
    assert host_and_compute_ns(rows) == (8 * MS, 0)


@pytest.mark.parametrize(("gap", "inside"), [(MAX_GAP_NS, True), (MAX_GAP_NS + 1, False)])
def test_a_long_gap_keeps_its_own_cause(gap: int, inside: bool) -> None:
    first = tiny(500)
    rows = [first, tiny(500, begin=first[-1].end + gap)]
    (trace,) = one_rank(step(0, 0, WINDOW_NS), *rows, backend="gloo").ranks
    # Two times 500 x 5 us less the last gap, and the gap between.
    assert intervals.measure(dispatch_spans(trace)) == 2 * (500 * 5 - 2) * US + (gap if inside else 0)


def test_operators_inside_another_are_part_of_it() -> None:
    outer = operator("aten::embedding_bag", MS, 10 * MS)
    assert host_and_compute_ns(outer, tiny(1000)) == (0, 9 * MS)


def test_another_threads_compute_beside_a_run_stays_compute() -> None:
    beside = operator("autograd::engine::evaluate_function: MmBackward0", 2 * MS, 4 * MS, lane="autograd")
    host, compute = host_and_compute_ns(tiny(1000), beside)
    assert (host, compute) == (4_998 * US - 2 * MS, 2 * MS)


def test_batch_loading_of_tiny_operators_is_input() -> None:
    host, compute = host_and_compute_ns(mark("## load_batch ##", 0, 10 * MS), tiny(1000))
    assert (host, compute) == (0, 0)
