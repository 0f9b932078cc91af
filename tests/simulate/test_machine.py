"""The core, by hand: every expected number follows from the costs below."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from traceinsight.simulate.machine import Costs, Machine, Payload

# An operator takes 10 us of host time, of which the launch call is the last 60 %: it begins after 4 us. A
# kernel can start 5 us after its call began. A collective takes 12 us: 1 for the event record, 1 for the
# stream's wait, 10 for the operator, whose call begins after 4.
COSTS = Costs(launch_ns=10_000, collective_ns=12_000, launch_latency_ns=5_000, queue_depth=1024, slowdown=0.0)


def machine(ranks: int = 2, **change: float) -> Machine:
    fields = {name: getattr(COSTS, name) for name in Costs.__dataclass_fields__}
    return Machine(ranks, Costs(**(fields | change)), lambda _label, _step: np.ones(ranks))


def us(*values: float) -> NDArray[np.int64]:
    return np.array([round(value * 1000) for value in values], dtype=np.int64)


def all_reduce(ranks: int, members: tuple[tuple[int, ...], ...] | None = None) -> Payload:
    groups = members or (tuple(range(ranks)),)
    elements = np.full(ranks, 100, dtype=np.int64)
    names = tuple(str(at) for at in range(len(groups)))
    return Payload(
        "allreduce", "Float", 4, elements, elements, None, groups, names, "default_pg", elements * 0
    )


def test_a_kernel_starts_one_latency_after_its_launch_call() -> None:
    one = machine(1)
    end = one.kernel("aten::mm", "gemm", 7, us(100))
    # call at 4, start at 4 + 5 = 9, end at 109; the host is free at 10
    assert end.tolist() == us(109).tolist()
    assert one.host_ns.tolist() == us(10).tolist()


def test_kernels_of_one_stream_follow_each_other() -> None:
    one = machine(1)
    one.kernel("aten::mm", "gemm", 7, us(100))
    end = one.kernel("aten::mm", "gemm", 7, us(50))
    # launched at 14, could start at 19, but the stream is busy until 109: 109 + 50
    assert end.tolist() == us(159).tolist()


def test_streams_run_beside_each_other() -> None:
    one = machine(1)
    one.kernel("aten::mm", "gemm", 7, us(100))
    end = one.kernel("aten::mm", "gemm", 8, us(50))
    assert end.tolist() == us(10 + 4 + 5 + 50).tolist()


def test_a_collective_ends_for_all_at_the_last_arrival_plus_the_transfer() -> None:
    two = machine(2)
    two.kernel("aten::mm", "gemm", 7, us(100, 300))  # ends at 109 and 309
    meeting = two.collective("sum", "nccl", 20, all_reduce(2), [50_000], two.stream_ns(7))
    assert meeting.arrival_ns.tolist() == us(109, 309).tolist()
    assert meeting.last_ns.tolist() == us(309, 309).tolist()
    assert meeting.end_ns.tolist() == us(359, 359).tolist()
    # rank 0 waits 200 us, rank 1 does not wait
    assert (meeting.last_ns - meeting.arrival_ns).tolist() == us(200, 0).tolist()


def test_groups_do_not_wait_for_each_other() -> None:
    four = machine(4)
    four.kernel("aten::mm", "gemm", 7, us(100, 200, 300, 400))
    meeting = four.collective(
        "sum", "nccl", 20, all_reduce(4, ((0, 2), (1, 3))), [10_000, 20_000], four.stream_ns(7)
    )
    # groups meet at 309 and 409, and take 10 and 20 us
    assert meeting.end_ns.tolist() == us(319, 429, 319, 429).tolist()


def test_a_transfer_beside_compute_hides_exactly_the_smaller_of_both() -> None:
    for beside in (20.0, 80.0, 200.0):
        one = machine(1)
        one.kernel("lookup", "lookup", 7, us(100))  # 9 to 109
        meeting = one.collective("exchange", "nccl", 20, all_reduce(1), [80_000], one.stream_ns(7))  # to 189
        one.kernel("dense", "gemm", 7, us(beside))  # from 109 on
        one.wait(7, meeting.end_ns)
        end = one.kernel("top", "gemm", 7, us(10))
        # serial: 109 + 80 + beside + 10
        assert end.tolist() == us(109 + 80 + beside + 10 - min(80, beside)).tolist()


def test_compute_beside_a_transfer_is_slowed_down() -> None:
    one = machine(1, slowdown=0.25)
    one.kernel("lookup", "lookup", 7, us(100))  # 9 to 109
    one.collective("exchange", "nccl", 20, all_reduce(1), [50_000], one.stream_ns(7))  # 109 to 159
    end = one.kernel("dense", "gemm", 7, us(100))
    # in the 50 us of the transfer 50 / 1.25 = 40 us of work are done, the other 60 afterwards: 159 + 60
    assert end.tolist() == us(219).tolist()


def test_a_synchronisation_returns_after_the_stream_is_done() -> None:
    two = machine(2)
    two.kernel("aten::mm", "gemm", 7, us(100, 3))  # ends at 109 and 12
    two.synchronise(7)
    assert two.host_ns.tolist() == us(109 + 2, 12 + 2).tolist()


def test_a_full_queue_blocks_the_launch() -> None:
    one = machine(1, queue_depth=2)
    for _ in range(3):
        one.kernel("aten::mm", "gemm", 7, us(1000))
    # the third launch waits for the end of the first kernel (1009); its call (60 % of 10 us) then ends
    assert one.host_ns.tolist() == us(1009 + 6).tolist()
