"""Kernels beside transfers: how much slower a run shows them to be, and what becomes of it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.replay.jobs import assembled
from tests.trace.recordings import ALL_TO_ALL, MS, US, Row, kernel, launched, recording, step
from traceinsight.replay.beside import settled, share_beside, with_beside
from traceinsight.replay.graph import Beside, Graph, NodeKind
from traceinsight.replay.solve import expected_step_ns, replay
from traceinsight.trace.recording import CommArgs
from traceinsight.trace.trace_set import TraceSet

PERIOD = 3 * MS
ALONE = 1 * MS
LOSS = 0.1
BESIDE = (100 * US, 300 * US, 500 * US, 700 * US, 900 * US)
ARGS = CommArgs(collective="all_to_allv", group_ranks=(0, 1), group_name="0")


def run(lengths: Sequence[int], transfers: Sequence[int], *more: Row) -> tuple[TraceSet, Graph]:
    """Two ranks; each step's only kernel and its exchange start together."""
    rows: list[Any] = [*more]
    for at, (length, transfer) in enumerate(zip(lengths, transfers, strict=True)):
        begin = at * PERIOD
        start = begin + 14 * US
        rows += [
            step(at, begin, begin + PERIOD),
            launched(kernel("gemm", start, start + length, 2 * at + 1), begin + 10 * US),
            launched(
                kernel(ALL_TO_ALL, start, start + transfer, 2 * at + 2, 20, ARGS), begin + 12 * US
            ),
        ]  # fmt: skip
    return assembled(*(recording(*rows, rank=rank, world_size=2, backend="nccl") for rank in (0, 1)))


def slowed() -> tuple[TraceSet, Graph]:
    """In the time o beside a transfer 0.9 o of the work is done: a kernel takes 1 ms + 0.1 o."""
    return run([round(ALONE + LOSS * beside) for beside in BESIDE], BESIDE)


def test_a_kernel_beside_a_collective_without_a_transfer_shows_nothing() -> None:
    """From before the recording, over the whole first step: only there a kernel looks slow beside nothing.

    The other four were 0 us beside transfers and take 1 ms. With the first, which takes 1.1 ms and has a
    transfer of 500 us beside it, the loss would be about 0.2.
    """
    lengths, transfers = [1100 * US, *[ALONE] * 4], [500 * US, *[1] * 4]
    stray = kernel(ALL_TO_ALL, -100 * US, 2 * MS, 99, 28)
    assert with_beside([run(lengths, transfers)[1]], run(lengths, transfers)[0])[0].beside is not None
    trace_set, graph = run(lengths, transfers, stray)
    assert with_beside([graph], trace_set) == (graph,)


def lengths_of(graph: Graph) -> set[int]:
    return set(np.rint(graph.nodes.duration_ns[graph.nodes.kind == NodeKind.WORK]).astype(int).tolist())


def test_a_kernel_is_beside_transfers_for_a_share_of_its_time() -> None:
    _, graph = slowed()
    share = share_beside(graph, graph.nodes.measured_ns.astype(float))
    work = graph.nodes.kind == NodeKind.WORK
    expected = [beside / (ALONE + LOSS * beside) for beside in BESIDE for _ in (0, 1)]
    assert share[work] == pytest.approx(expected)
    assert not share[~work].any()


def test_the_loss_of_speed_is_read_off_kernels_that_were_beside_transfers_for_unequal_times() -> None:
    """-ln(1 - r x), by which a length grows, lies between r x and r x / (1 - r)."""
    trace_set, graph = slowed()
    (found,) = with_beside([graph], trace_set)
    assert found.beside is not None
    assert LOSS <= found.beside.loss <= LOSS / (1 - LOSS)


@pytest.mark.parametrize(
    ("lengths", "transfers"),
    [
        ([ALONE] * 5, BESIDE),  # as fast beside transfers
        ([1000 * US, 1010 * US, 1000 * US, 1010 * US, 1000 * US], [500 * US] * 5),  # nothing to compare
        ([1000 * US, 1500 * US, 2000 * US, 1500 * US, 1000 * US], BESIDE),  # its work differs
        ([1090 * US, 1010 * US, 1100 * US, 1000 * US, 1095 * US], BESIDE),  # differs for another reason
    ],
)
def test_no_loss_is_read_off_kernels_that_do_not_show_one(
    lengths: Sequence[int], transfers: Sequence[int]
) -> None:
    trace_set, graph = run(lengths, transfers)
    assert with_beside([graph], trace_set) == (graph,)


def test_a_kernel_without_transfers_beside_it_takes_as_long_as_alone() -> None:
    _, graph = slowed()
    share = share_beside(graph, graph.nodes.measured_ns.astype(float))
    graph = replace(graph, beside=Beside(LOSS, share))
    assert lengths_of(settled(graph, replay(graph))) == lengths_of(graph)  # unedited
    moved = graph.with_durations(
        np.where(graph.nodes.kind == NodeKind.TRANSFER, 0.0, graph.nodes.duration_ns)
    )
    assert lengths_of(settled(moved, replay(moved))) == {ALONE}
    # From the end of the first kernel, of 1,010 or 1,000 us, to that of the last, of 1,090 or 1,000 us.
    assert expected_step_ns([graph]) == pytest.approx(PERIOD + (1090 - 1010) * US / 4, abs=1)
    assert expected_step_ns([moved]) == pytest.approx(PERIOD, abs=1)
