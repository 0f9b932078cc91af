"""The six parts of a step window, and which ranks and steps have one."""

from tests.analyses.trace_sets import one_rank, partition_of
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
    mark,
    operator,
    recording,
    step,
)
from traceinsight.analyses.partition import step_times
from traceinsight.trace.assemble import assemble
from traceinsight.trace.recording import Recording


def test_the_six_parts_of_a_lock_step_job() -> None:
    # Own time is 1 ms on ranks 0-2 and 3 ms on rank 3, before each of three exchanges.
    rows = partition_of(assemble(lockstep(lambda rank, step, at: 3 * MS if rank == 3 else MS)))
    window = LEAD_NS + 3 * (3 * MS + TRANSFER_NS) + TAIL_NS
    assert len(rows) == 4 * 5
    for row in rows:
        own = 3 * MS if row.rank == 3 else MS
        assert row.window_ns == window
        assert row.compute_ns == 3 * own + TAIL_NS
        assert row.exposed_comm_wait_ns == 3 * (3 * MS - own)
        assert row.exposed_comm_transfer_ns == 3 * TRANSFER_NS
        assert (row.exposed_comm_unsplit_ns, row.exposed_copy_ns) == (0, 0)
        # Each step's launches begin 1 us into it, after the host waited for the step before; the device
        # idles until LEAD_NS: 1 us because the queue was drained, 9 us latency.
        assert row.idle_ns == LEAD_NS
        if row.step < 4:  # nothing was captured after the last step: what ended its gap is not known
            assert row.idle_by_cause_ns == {"host_sync": US, "launch_latency": LEAD_NS - US}


def test_without_a_peer_what_follows_the_last_captured_arrival_is_unsplit() -> None:
    # Rank 3, the last one, was not captured: nobody can say when it came.
    three = lockstep(lambda rank, step, at: 3 * MS if rank == 3 else MS)[:3]
    for row in partition_of(assemble(three)):
        assert row.exposed_comm_transfer_ns == row.exposed_comm_wait_ns == 0
        assert row.exposed_comm_unsplit_ns == 3 * (2 * MS + TRANSFER_NS)


def test_communication_under_compute_is_not_exposed() -> None:
    trace_set = one_rank(
        step(0, 0, 100), step(1, 100, 200),
        launched(kernel(GEMM, 10, 60, 1), 1), launched(kernel(ALL_TO_ALL, 40, 90, 2, stream=20), 2),
        launched(kernel(GEMM, 110, 120, 3), 101),
    )  # fmt: skip
    first = partition_of(trace_set)[0]
    # Window 10-110: compute 50, communication 60-90 exposed (nobody to split it with), 90-110 idle.
    assert (first.window_ns, first.compute_ns) == (100, 50)
    assert first.exposed_comm_unsplit_ns == 30
    assert first.idle_ns == 20


def test_a_clock_that_is_ahead_changes_no_part() -> None:
    def own(rank: int, step: int, at: int) -> int:
        return MS + rank * 100 * US

    plain = partition_of(assemble(lockstep(own)))
    skewed = partition_of(assemble(lockstep(own, ahead_ns={1: 5 * MS, 3: -700 * US})))
    assert plain == skewed


def test_a_host_without_its_accelerator_has_no_partition() -> None:
    hosts = one_rank(step(0, 0, MS), mark("nccl:all_reduce", 10, 20), operator("aten::mm", 30, 40))
    assert partition_of(hosts) == []


def gloo_rank(own_ns: int, start_ns: int, rank: int = 0) -> Recording:
    """0-100 us load, compute, exchange from ``start`` to 800 us, 100 us of Python, then nothing."""
    return recording(
        step(0, 0, MS), step(1, MS, 2 * MS),
        mark("## load_batch ##", 0, 100 * US),
        operator("aten::mm", 100 * US, 100 * US + own_ns),
        operator("c10d::alltoall_base_", start_ns - 5 * US, start_ns),
        mark("gloo:all_to_all", start_ns, 800 * US, lane="gloo"),
        mark("## Request wait() ##", start_ns, 800 * US),
        mark("## optimizer ##", 800 * US, 900 * US),
        operator("aten::mm", MS, 2 * MS),
        rank=rank, world_size=2, backend="gloo",
    )  # fmt: skip


def test_a_cpu_rank_is_partitioned_like_a_gpu() -> None:
    # Rank 0 computes 200 us and arrives at 305; rank 1 computes 500 us and arrives at 605.
    trace_set = assemble([gloo_rank(200 * US, 305 * US), gloo_rank(500 * US, 605 * US, rank=1)])
    first, other = [row for row in partition_of(trace_set) if row.step == 0]
    assert first.window_ns == other.window_ns == MS
    assert (first.compute_ns, other.compute_ns) == (200 * US, 500 * US)
    assert (first.exposed_comm_wait_ns, other.exposed_comm_wait_ns) == (300 * US, 0)
    assert first.exposed_comm_transfer_ns == other.exposed_comm_transfer_ns == 195 * US
    # Idle: loading 100, issuing the exchange 5, Python under "optimizer" 100, unexplained 100.
    expected = {"input": 100 * US, "host": 100 * US, "dependency": 5 * US, "unattributed": 100 * US}
    assert first.idle_by_cause_ns == other.idle_by_cause_ns == expected
    assert first.idle_ns == sum(expected.values())


def test_step_times_name_dropped_steps_too_and_no_length_that_was_not_marked() -> None:
    marked = one_rank(step(0, 0, 50), step(1, 50, 60), step(2, 60, 70), [launched(kernel(GEMM, 5, 9, 1), 2)])
    assert [(one.step, one.cpu_ns, one.device_ns) for one in step_times(marked)] == [
        (0, 50, 50), (1, 10, None), (2, 10, None),
    ]  # fmt: skip
    assert 0 not in marked.steps
    (whole,) = step_times(one_rank(kernel(GEMM, 0, 9)))
    assert (whole.cpu_ns, whole.device_ns) == (None, 9)
