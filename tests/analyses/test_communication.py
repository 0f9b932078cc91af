"""Collectives one by one and by kind: payload, bandwidth, imbalance; what is not recorded is None."""

import pytest

from tests.trace.recordings import (
    GEMM,
    MS,
    TRANSFER_NS,
    US,
    copy,
    kernel,
    launched,
    lockstep,
    mark,
    recording,
    step,
)
from traceinsight.analyses.communication import clocks, collectives, communication
from traceinsight.diagnosis import Collective
from traceinsight.trace.activity import activities
from traceinsight.trace.assemble import assemble
from traceinsight.trace.recording import CommArgs
from traceinsight.trace.trace_set import TraceSet

KERNELS = {
    "all_to_allv": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    "allreduce": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "_allgather_base": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "_reduce_scatter_base": "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "broadcast": "ncclDevKernel_Broadcast_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
}


def meeting(
    name: str,
    sizes: dict[int, tuple[int | None, int | None]],
    *,
    dtype: str | None = "Float",
    starts: dict[int, int] | None = None,
    world_size: int | None = None,
) -> Collective:
    """One collective of these (in, out) elements per rank. It ends for all at 1100 us."""
    recordings = []
    for rank, (sent, received) in sizes.items():
        begin = (starts or {}).get(rank, 1000) * US
        args = CommArgs(collective=name, in_elements=sent, out_elements=received, dtype=dtype)
        exchange = kernel(KERNELS[name], begin, 1100 * US, 1, stream=20, args=args)
        recordings.append(
            recording(step(0, 0, 2 * MS), launched(exchange, 10 * US), rank=rank, world_size=world_size)
        )
    (one,) = collectives(assemble(recordings))
    return one


@pytest.mark.parametrize(
    ("name", "sent", "received", "size", "algorithm", "bus"),
    [  # 1e6 floats are 4 MB; in 100 us that is 40 GB/s. Four ranks: 2 * 3/4 or 3/4 of it on the bus.
        ("allreduce", 1_000_000, 1_000_000, 4_000_000, 40.0, 60.0),
        ("all_to_allv", 1_000_000, 1_000_000, 4_000_000, 40.0, 30.0),
        ("_allgather_base", 250_000, 1_000_000, 4_000_000, 40.0, 30.0),
        ("_reduce_scatter_base", 1_000_000, 250_000, 4_000_000, 40.0, 30.0),
    ],
)
def test_bandwidths_are_those_of_nccl_tests(
    name: str, sent: int, received: int, size: int, algorithm: float, bus: float
) -> None:
    one = meeting(name, dict.fromkeys(range(4), (sent, received)))
    assert (one.bytes, one.transfer_ns) == (size, 100 * US)
    assert one.algorithm_gbps == pytest.approx(algorithm)
    assert one.bus_gbps == pytest.approx(bus)


def test_transfer_begins_with_the_last_arrival_and_the_rest_is_waiting() -> None:
    one = meeting("allreduce", dict.fromkeys(range(3), (1_000_000, 1_000_000)), starts={1: 400, 2: 1060})
    assert one.transfer_ns == 40 * US  # 1100 - 1060
    assert one.wait_ns == {0: 60 * US, 1: 660 * US, 2: 0}
    assert one.last_rank == 2
    assert one.algorithm_gbps == pytest.approx(100.0)  # 4 MB in 40 us, not in the 700 us of rank 1's kernel


def test_size_imbalance_is_the_largest_over_the_mean() -> None:
    # Rank 2 sends 4e6 values, the others 1e6: mean 7/4 e6, ratio 16/7. The size is the largest: 16 MB.
    sizes = dict.fromkeys(range(4), (1_000_000, 1_000_000)) | {2: (4_000_000, 1_000_000)}
    one = meeting("all_to_allv", sizes)
    assert one.size_imbalance == pytest.approx(16 / 7)
    assert one.bytes == 16_000_000


def test_only_an_all_to_all_can_be_unbalanced() -> None:
    assert meeting("allreduce", dict.fromkeys(range(4), (10, 10))).size_imbalance is None


@pytest.mark.parametrize(("elements", "dtype"), [(None, "Float"), (1_000_000, None), (1_000_000, "QInt77")])
def test_sizes_not_recorded_are_none_and_never_zero(elements: int | None, dtype: str | None) -> None:
    one = meeting("all_to_allv", dict.fromkeys(range(4), (elements, elements)), dtype=dtype)
    assert one.bytes is one.bus_gbps is one.algorithm_gbps is one.size_imbalance is None
    assert one.transfer_ns == 100 * US  # times are known all the same


def test_a_missing_member_leaves_transfer_unknown_and_waits_a_lower_bound() -> None:
    one = meeting("allreduce", {0: (10, 10), 1: (10, 10)}, starts={1: 1050}, world_size=4)
    assert one.unmatched_ranks == [2, 3]
    assert one.transfer_ns is one.bus_gbps is None
    assert one.wait_ns == {0: 50 * US, 1: 0}


def test_nobody_waits_in_a_broadcast() -> None:
    one = meeting("broadcast", dict.fromkeys(range(4), (10, 10)), starts={1: 1050})
    assert not one.synchronising
    assert (one.wait_ns, one.transfer_ns, one.last_rank) == ({}, None, None)


def labelled_job(elements: int | None = 1_000_000) -> TraceSet:
    """Two ranks, two steps of 1 ms: per step one exchange of 200 us, of which 50 us lie under compute."""
    args = CommArgs(collective="all_to_allv", in_elements=elements, out_elements=elements, dtype="Float")
    recordings = []
    for rank in range(2):
        rows: list[object] = []
        for number in range(2):
            begin, key = MS + number * MS, 10 * number
            rows += [
                step(number, begin, begin + MS),
                mark("## forward ##", begin, begin + 100 * US),
                mark("## All2All_Pooled_fwd ##", begin + 10 * US, begin + 20 * US),
                launched(kernel(GEMM, begin + 50 * US, begin + 150 * US, key + 1), begin + 5 * US),
                launched(
                    kernel(KERNELS["all_to_allv"], begin + 100 * US, begin + 300 * US, key + 2, 20, args),
                    begin + 12 * US,
                ),
            ]
        recordings.append(recording(rows, rank=rank, world_size=2))
    return assemble(recordings)


def test_collectives_by_kind() -> None:
    trace_set = labelled_job()
    (row,) = communication(trace_set, activities(trace_set))
    assert (row.op, row.label, row.phase) == ("all_to_all", "## All2All_Pooled_fwd ##", "forward")
    assert (row.count_per_step, row.bytes_per_step) == (1.0, 4_000_000)
    assert (row.busy_ns, row.exposed_ns) == (200 * US, 150 * US)
    assert (row.exposed_transfer_ns, row.exposed_wait_ns, row.exposed_unsplit_ns) == (150 * US, 0, 0)
    assert row.exposed_share == pytest.approx(0.15)  # 150 us of windows of 1 ms
    assert row.bus_gbps == pytest.approx(10.0)  # 4 MB in 200 us = 20 GB/s, half of it for two ranks


def test_bytes_of_a_kind_are_none_when_not_recorded() -> None:
    trace_set = labelled_job(None)
    (row,) = communication(trace_set, activities(trace_set))
    assert row.bytes_per_step is row.bus_gbps is None


def test_waiting_is_averaged_over_ranks() -> None:
    # Rank 3 is 2 ms late at each of three exchanges: three of four ranks wait 6 ms per step, mean 4.5 ms.
    trace_set = assemble(lockstep(lambda rank, step, at: MS + (2 * MS if rank == 3 else 0)))
    (row,) = communication(trace_set, activities(trace_set))
    assert row.count_per_step == 3.0
    assert row.exposed_wait_ns == 4_500 * US
    assert row.exposed_transfer_ns == 3 * TRANSFER_NS


def test_clocks_of_all_ranks() -> None:
    trace_set = assemble(lockstep(lambda rank, step, at: MS, ahead_ns={1: 5 * MS}))
    assert [(one.rank, one.offset_ns, one.residual_ns) for one in clocks(trace_set)] == [
        (0, 0, 0), (1, 5 * MS, 0), (2, 0, 0), (3, 0, 0),
    ]  # fmt: skip


def test_what_was_launched_before_the_recording_counts_for_no_step() -> None:
    # The device runs a step behind the host: step 0's window holds the exchange launched before the
    # recording, step 1's window that of step 0, and that of step 1 runs after both: one per step, 400 us.
    rows = [kernel(KERNELS["all_to_allv"], 100 * US, 500 * US, 99, 20)]
    for number in range(2):
        begin = number * MS
        key = 10 * number
        late = kernel(KERNELS["all_to_allv"], begin + MS + 100 * US, begin + MS + 500 * US, key + 1, 20)
        rows += [
            step(number, begin, begin + MS),
            mark("## All2All_Pooled_fwd ##", begin + 10 * US, begin + 20 * US),
            mark("## start_sparse_data_dist ##", begin + 50 * US, begin + 900 * US),
            launched(copy("Memcpy HtoD", begin + 20 * US, begin + 30 * US, key + 2), begin + 5 * US),
            launched(late, begin + 12 * US),
        ]
    trace_set = assemble([recording(rows, rank=rank, world_size=2) for rank in range(2)])
    (row,) = communication(trace_set, activities(trace_set))
    assert (row.label, row.count_per_step, row.exposed_ns) == ("## All2All_Pooled_fwd ##", 1.0, 400 * US)
    assert [one.step for one in collectives(trace_set)] == [-1, 0, 1]
