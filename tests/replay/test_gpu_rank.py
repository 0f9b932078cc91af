"""One GPU rank, and several that meet: every dependency by itself, on recordings of a few rows."""

from typing import Any

import pytest

from tests.replay.jobs import assembled, starts
from tests.trace.recordings import ALL_TO_ALL, MS, US, call, copy, kernel, launched, mark, recording, step
from traceinsight.replay.graph import EdgeKind
from traceinsight.trace.recording import CommArgs

LATENCY = 4 * US


def work(name: str, start: int, end: int, at: int, key: int, stream: int = 7) -> tuple[Any, ...]:
    """A kernel, and the call at ``at`` that launched it."""
    return launched(kernel(name, start, end, key, stream), at)


def one_rank(*rows: Any, end: int = 2 * MS) -> Any:
    return assembled(recording(step(0, 0, end), *rows, backend="nccl", world_size=1))


def test_an_idle_stream_starts_work_a_launch_latency_after_its_launch() -> None:
    run = one_rank(work("a", 14 * US, 50 * US, 10 * US, 1), work("b", 204 * US, 220 * US, 200 * US, 2))
    found = starts(*run, {"a": 1})
    assert found[0, "a"] == 14 * US
    assert found[0, "b"] == 204 * US  # the host, not `a`, decides


def test_work_on_one_stream_runs_in_order() -> None:
    run = one_rank(work("a", 14 * US, 500 * US, 10 * US, 1), work("b", 500 * US, 600 * US, 20 * US, 2))
    assert starts(*run)[0, "b"] == 500 * US
    assert starts(*run, {"a": 86 * US})[0, "b"] == 100 * US
    assert starts(*run, {"a": 1 * US})[0, "b"] == 20 * US + LATENCY  # no earlier than its launch allows


def test_a_device_that_is_always_behind_shows_no_launch_latency() -> None:
    """All launches wait 10 ms and more in the queue: that must not be kept when the device gets faster."""
    rows = [work(f"k{at}", (10 + at) * MS, (11 + at) * MS, (at + 1) * 10 * US, at + 1) for at in range(20)]
    backlog = kernel("backlog", -5 * MS, 10 * MS, 77)
    run = one_rank(backlog, *rows, end=40 * MS)
    found = starts(*run, {f"k{at}": 10 * US for at in range(20)} | {"backlog": 5 * MS})
    assert found[0, "k19"] < 1 * MS


def test_work_from_before_the_stretch_keeps_its_stream_busy() -> None:
    run = one_rank(kernel("old", -100 * US, 300 * US, 77), work("a", 300 * US, 400 * US, 10 * US, 1))
    assert starts(*run)[0, "a"] == 300 * US
    assert starts(*run, {"old": 200 * US})[0, "a"] == 100 * US


def test_an_announced_wait_across_streams_binds_however_late_it_started() -> None:
    """cudaStreamWaitEvent before the launch; the work starts 50 us after the end it waited for."""
    run = one_rank(
        work("a", 14 * US, 300 * US, 10 * US, 1),
        call("cudaStreamWaitEvent", 15 * US, 16 * US),
        work("b", 350 * US, 400 * US, 20 * US, 2, stream=20),
    )
    assert starts(*run, {"a": 186 * US})[0, "b"] == 250 * US  # 50 us of delay stay


def test_a_wait_across_streams_is_inferred_from_a_start_right_at_an_end() -> None:
    run = one_rank(
        work("a", 14 * US, 300 * US, 10 * US, 1), work("b", 302 * US, 400 * US, 20 * US, 2, stream=20)
    )
    assert starts(*run, {"a": 186 * US})[0, "b"] == 202 * US


@pytest.mark.parametrize(("before_ns", "waited"), [(2 * US, False), (100 * US, True)])
def test_work_right_behind_its_own_stream_did_not_wait_for_another_that_ended_then(
    before_ns: int, waited: bool
) -> None:
    """`b` starts 2 us after `a` on another stream, and 2 or 100 us after `own` on its stream."""
    run = one_rank(
        work("a", 14 * US, 300 * US, 10 * US, 1),
        work("own", 24 * US, 302 * US - before_ns, 20 * US, 2, stream=20),
        work("b", 302 * US, 400 * US, 30 * US, 3, stream=20),
    )
    found = starts(*run, {"a": 786 * US})
    assert found[0, "b"] == (802 * US if waited else 302 * US)


def test_streams_that_only_run_beside_each_other_do_not_wait() -> None:
    run = one_rank(
        work("a", 14 * US, 300 * US, 10 * US, 1), work("b", 24 * US, 400 * US, 20 * US, 2, stream=20)
    )
    assert starts(*run, {"a": 900 * US})[0, "b"] == 24 * US


def synchronised() -> Any:
    return one_rank(
        work("a", 14 * US, 300 * US, 10 * US, 1),
        call("cudaStreamSynchronize", 20 * US, 302 * US, 9),
        work("b", 324 * US, 400 * US, 320 * US, 2),
    )


def test_a_host_synchronisation_ends_with_the_work_it_waited_for() -> None:
    run = synchronised()
    assert starts(*run)[0, "b"] == 324 * US
    assert starts(*run, {"a": 86 * US})[0, "b"] == 124 * US  # everything 200 us earlier
    assert starts(*run, {"a": 386 * US})[0, "b"] == 424 * US  # and 100 us later


def test_a_synchronisation_with_nothing_left_to_wait_for_takes_microseconds() -> None:
    trace_set, graph = synchronised()
    found = starts(trace_set, graph, {"a": 1})
    # begin 20 us, at most 5 us for the call, then 18 us of the host's own time and the launch latency
    assert found[0, "b"] == 20 * US + 5 * US + 18 * US + LATENCY


@pytest.mark.parametrize(
    ("name", "expected"), [("cudaStreamSynchronize", 404), ("cudaDeviceSynchronize", 846)]
)
def test_a_synchronisation_that_waited_for_nothing_waits_later_only_if_for_the_whole_device(
    name: str, expected: int
) -> None:
    """`a` is long done when the call begins; which stream the call asked for, the trace does not say."""
    run = one_rank(
        work("a", 14 * US, 300 * US, 10 * US, 1),
        call(name, 380 * US, 382 * US, 9),
        work("b", 404 * US, 450 * US, 400 * US, 2, stream=20),
    )
    assert starts(*run)[0, "b"] == 404 * US
    # `a` then ends at 799 us; the call returns 25 us later at most, the launch comes 18 us after that.
    assert starts(*run, {"a": 785 * US})[0, "b"] == expected * US


def test_a_synchronisation_may_begin_as_the_one_before_it_returns() -> None:
    """The second begins at 302 us, when the first returns: it is no part of the first one's wait."""
    run = one_rank(
        work("a", 14 * US, 300 * US, 10 * US, 1),
        call("cudaStreamSynchronize", 20 * US, 302 * US, 8),
        call("cudaStreamSynchronize", 302 * US, 304 * US, 9),
        work("b", 324 * US, 400 * US, 320 * US, 2),
    )
    assert starts(*run)[0, "b"] == 324 * US
    assert starts(*run, {"a": 86 * US})[0, "b"] == 124 * US


def test_a_call_that_takes_no_time_returns_after_it_began() -> None:
    run = one_rank(
        work("a", 14 * US, 300 * US, 10 * US, 1),
        call("cudaStreamSynchronize", 302 * US, 302 * US, 8),
        work("b", 324 * US, 400 * US, 320 * US, 2),
    )
    assert starts(*run)[0, "b"] == 324 * US


@pytest.mark.parametrize(("phase", "expected"), [("sparse_data_dist", 846), ("forward", 404)])
def test_a_synchronisation_that_found_a_copy_done_waits_for_it_where_the_copy_is_of_its_phase(
    phase: str, expected: int
) -> None:
    """The counts were on the host at 310 us and asked for at 380 us; `a` then ends at 799 us, not 300 us.

    The copy ends 10 us later, the call returns 25 us after that at most, the launch comes 18 us later.
    """
    counts = copy("Memcpy DtoH (Device -> Pinned)", 300 * US, 310 * US, 3, stream=7)
    run = one_rank(
        mark("## start_sparse_data_dist ##", 5 * US, 30 * US),
        work("a", 14 * US, 300 * US, 10 * US, 1),
        launched(counts, 20 * US, "cudaMemcpyAsync"),
        mark(f"## {phase} ##", 370 * US, 390 * US),
        call("cudaStreamSynchronize", 380 * US, 382 * US, 9),
        work("b", 404 * US, 450 * US, 400 * US, 2, stream=20),
    )
    assert starts(*run)[0, "b"] == 404 * US
    extra = 10 if phase == "sparse_data_dist" else 0
    assert starts(*run, {"a": 785 * US})[0, "b"] == (expected + extra) * US


def test_an_allocator_that_frees_waits_for_the_device_without_saying_so() -> None:
    run = one_rank(
        work("a", 14 * US, 1500 * US, 10 * US, 1),
        call("cudaFree", 1510 * US, 1520 * US),
        work("b", 1534 * US, 1600 * US, 1530 * US, 2),
    )
    assert starts(*run)[0, "b"] == 1534 * US
    assert starts(*run, {"a": 486 * US})[0, "b"] < 600 * US


def test_a_host_that_is_busy_that_long_without_freeing_does_not_wait_for_the_device() -> None:
    run = one_rank(
        work("a", 14 * US, 1500 * US, 10 * US, 1),
        call("cudaGetDevice", 1510 * US, 1511 * US),
        work("b", 1534 * US, 1600 * US, 1530 * US, 2),
    )
    assert starts(*run, {"a": 486 * US})[0, "b"] == 1534 * US


def long_launch(before: int) -> Any:
    """So many launches 1 us apart while `old` keeps the device, then one whose call returns after `old`."""
    rows = [
        work(f"k{at}", (1000 + 10 * at) * US, (1010 + 10 * at) * US, at * US, at + 1) for at in range(before)
    ]
    end = (1010 + 10 * before) * US
    return one_rank(
        kernel("old", 0, 1000 * US, 9999),
        *rows,
        call("cudaLaunchKernel", before * US, 1002 * US, 7777),
        kernel("last", end - 10 * US, end, 7777),
        work("prompt", end + 104 * US, end + 110 * US, end + 100 * US, 8888),
        end=20 * MS,
    )


def returned(run: Any, length: int) -> float:
    """When the kernel after the long call starts, with another length of `old`."""
    trace_set, graph = run
    return starts(trace_set, graph, {"old": length})[0, "prompt"]


def test_a_launch_into_a_full_queue_returns_when_the_device_has_taken_one() -> None:
    run = long_launch(300)
    measured = returned(run, 1000 * US)
    assert measured == (1010 + 10 * 300) * US + 104 * US
    _, graph = run
    assert (graph.edges.kind == EdgeKind.QUEUE).sum() == 1
    assert returned(run, 400 * US) == measured - 600 * US


def test_a_long_launch_with_room_in_the_queue_is_the_hosts_own_time() -> None:
    run = long_launch(100)
    _, graph = run
    assert not (graph.edges.kind == EdgeKind.QUEUE).any()
    assert returned(run, 400 * US) == returned(run, 1000 * US)


def test_an_odd_profiler_clock_may_put_work_before_its_launch() -> None:
    run = one_rank(work("a", 14 * US, 50 * US, 10 * US, 1), work("b", 190 * US, 250 * US, 200 * US, 2))
    assert starts(*run)[0, "b"] == 190 * US


def test_work_whose_launch_is_not_in_the_trace_starts_as_measured() -> None:
    run = one_rank(work("a", 14 * US, 50 * US, 10 * US, 1), kernel("b", 100 * US, 250 * US, 99, stream=9))
    assert starts(*run, {"a": 500 * US})[0, "b"] == 100 * US


# Meetings ------------------------------------------------------------------------------------------------

ARGS = CommArgs(collective="all_to_allv", group_ranks=(0, 1), group_name="0")
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def meeting_rank(
    rank: int, own: int, *, end: int, shift: int = 0, name: str = ALL_TO_ALL, args: CommArgs = ARGS
) -> Any:
    """Own work from 14 us on, then a collective that ends at ``end``, then more work."""
    arrival = 14 * US + own
    return recording(
        step(0, 0, 3 * MS),
        work("own", 14 * US, arrival, 10 * US, 1),
        launched(kernel(name, arrival, end, 2, 20, args), 11 * US),
        work("after", end, end + 100 * US, 12 * US, 3),
        rank=rank, shift_ns=shift, world_size=2, backend="nccl",
    )  # fmt: skip


def meeting(skew: int = 0, **options: Any) -> Any:
    """Rank 0 arrives at 114 us, rank 1 at 414 us; the transfer takes 50 us."""
    return assembled(
        meeting_rank(0, 100 * US, end=464 * US, **options),
        meeting_rank(1, 400 * US, end=464 * US, shift=skew, **options),
    )


@pytest.mark.parametrize("skew", [0, 10 * MS, -10 * MS])
def test_a_transfer_starts_when_the_last_member_arrives(skew: int) -> None:
    trace_set, graph = meeting(skew)
    slower = starts(trace_set, graph, {"own": 600 * US})
    assert slower[0, f"{ALL_TO_ALL} transfer"] == slower[1, f"{ALL_TO_ALL} transfer"] == 614 * US
    faster = starts(trace_set, graph, {"own": 200 * US})
    assert faster[0, "after"] == faster[1, "after"] == 214 * US + 50 * US


def test_one_member_that_comes_earlier_still_waits_for_the_other() -> None:
    trace_set, graph = meeting()
    duration = graph.nodes.duration_ns.copy()
    own = [at for at, name in enumerate(duration.tolist()) if name == 100 * US and graph.nodes.rank[at] == 0]
    duration[own[0]] = 1
    found = starts(trace_set, graph.with_durations(duration))
    assert found[0, ALL_TO_ALL] == 11 * US + LATENCY  # its own launch decides now
    assert found[0, f"{ALL_TO_ALL} transfer"] == 414 * US


def test_an_operation_that_does_not_synchronise_goes_at_its_own_pace() -> None:
    broadcast = CommArgs(collective="broadcast", group_ranks=(0, 1), group_name="0")
    trace_set, graph = meeting(name="ncclDevKernel_Broadcast_RING_LL(x)", args=broadcast)
    transfer = (0, "ncclDevKernel_Broadcast_RING_LL(x) transfer")
    assert starts(trace_set, graph, {"own": 10 * US})[transfer] == 24 * US


def test_a_collective_with_an_absent_member_still_replays() -> None:
    absent = CommArgs("allreduce", group_ranks=(0, 5), group_name="0")
    lonely = recording(
        step(0, 0, 3 * MS), work("own", 14 * US, 114 * US, 10 * US, 1),
        launched(kernel(ALL_REDUCE, 114 * US, 464 * US, 2, 20, absent), 11 * US),
        work("after", 464 * US, 500 * US, 12 * US, 3), rank=0, world_size=6, backend="nccl",
    )  # fmt: skip
    trace_set, graph = assembled(lonely)
    assert not trace_set.collectives[0].complete
    assert starts(trace_set, graph)[0, "after"] == 464 * US
    assert starts(trace_set, graph, {"own": 50 * US})[0, "after"] == 414 * US


def test_every_edge_of_a_rank_stays_on_it_but_for_meetings_and_the_origin() -> None:
    _, graph = meeting()
    source, target = graph.nodes.rank[graph.edges.source], graph.nodes.rank[graph.edges.target]
    across = source != target
    assert set(graph.edges.kind[across].tolist()) <= {EdgeKind.MEETING, EdgeKind.ORIGIN}
    assert across.any()
