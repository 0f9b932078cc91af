"""Communication share of forward, rebuilt from launches."""

import pytest

from tests.analyses.trace_sets import one_rank
from tests.trace.recordings import ALL_TO_ALL, GEMM, MS, US, kernel, launched, mark, operator, step
from traceinsight.analyses.forward import forward_shares
from traceinsight.diagnosis import ForwardShare
from traceinsight.trace.activity import activities


def shares(*rows: object) -> list[ForwardShare]:
    trace_set = one_rank(step(0, 0, MS), step(1, MS, 2 * MS), rows)
    return [row for row in forward_shares(trace_set, activities(trace_set)) if row.step == 0]


# Forward launches at 10-40 us; on the device it runs from 200 to 700 us: compute 200-300, exchange 280-500,
# compute 500-700. Backward's kernel follows.
WORK = [
    launched(kernel(GEMM, 200 * US, 300 * US, 1), 10 * US),
    launched(kernel(ALL_TO_ALL, 280 * US, 500 * US, 2, stream=20), 20 * US),
    launched(kernel(GEMM, 500 * US, 700 * US, 3), 30 * US),
    launched(kernel(GEMM, 700 * US, 900 * US, 4), 60 * US),
]


@pytest.mark.parametrize("label", ["## forward ##", "## forward 17 ##"])
def test_forward_is_what_its_annotation_launched(label: str) -> None:
    (row,) = shares(mark(label, 0, 50 * US), WORK)
    assert row.source == "## forward ##"
    assert row.span_ns == 500 * US
    assert row.comm_ns == 220 * US
    assert row.exposed_comm_ns == 200 * US  # 280-300 lies under compute
    assert (row.exposed_transfer_ns, row.exposed_wait_ns, row.exposed_unsplit_ns) == (0, 0, 200 * US)
    assert row.largest_collective is not None
    assert row.largest_collective.name == "all_to_all"
    assert row.largest_collective.share == pytest.approx(0.44)  # 220 of 500


def test_communication_that_others_launched_is_not_forwards() -> None:
    # A gradient exchange of the previous step still runs while forward computes.
    old = launched(kernel(ALL_TO_ALL, 310 * US, 480 * US, 9, stream=21), 55 * US)
    (row,) = shares(mark("## forward ##", 0, 50 * US), WORK, old)
    assert row.comm_ns == 220 * US


def test_work_of_other_threads_does_not_stretch_forward() -> None:
    prefetch = launched(kernel(GEMM, 800 * US, 890 * US, 9, stream=5), 20 * US, lane="loader")
    (row,) = shares(mark("## forward ##", 0, 50 * US), WORK, prefetch)
    assert row.span_ns == 500 * US


@pytest.mark.parametrize(
    "backward",
    [
        mark("## backward ##", 50 * US, 90 * US),
        operator("autograd::engine::evaluate_function: MmBackward0", 50 * US, 90 * US, lane="autograd"),
    ],
)
def test_without_its_annotation_forward_is_what_comes_before_backward(backward: object) -> None:
    (row,) = shares(backward, WORK)
    assert row.source == "everything before backward"
    assert row.span_ns == 500 * US


def test_a_step_that_shows_no_forward_has_no_share() -> None:
    assert shares(WORK) == []


def test_forward_without_communication_has_no_largest_collective() -> None:
    (row,) = shares(mark("## forward ##", 0, 50 * US), WORK[0], WORK[2])
    assert (row.comm_ns, row.largest_collective) == (0, None)
