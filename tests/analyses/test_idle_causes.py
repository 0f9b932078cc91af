"""Why a device idles, gap by gap. Every window below is 1 ms of one step, times in us."""

from tests.analyses.trace_sets import one_rank, partition_of
from tests.trace.recordings import GEMM, US, Row, call, copy, flat, kernel, launched, mark, operator, step
from traceinsight.diagnosis import Partition


def work(start: int, end: int, at: int, correlation: int, call_name: str = "cudaLaunchKernel") -> list[Row]:
    return list(launched(kernel(GEMM, start * US, end * US, correlation), at * US, call_name))


def judged(*rows: object) -> Partition:
    """A step whose first kernel runs 0-100 us and whose last one fills it from 900 us to its end."""
    edges = [work(0, 100, -10, 1), work(900, 1000, 895, 2)]
    other_step = [work(1000, 1010, 991, 3)]
    trace_set = one_rank(
        step(1, -20 * US, 990 * US), step(2, 990 * US, 2000 * US), edges, other_step, flat(rows)
    )
    return next(row for row in partition_of(trace_set) if row.step == 1)


def causes(*rows: object) -> dict[str, int]:
    row = judged(*rows)
    assert sum(row.idle_by_cause_ns.values()) == row.idle_ns
    return {cause: ns // US for cause, ns in row.idle_by_cause_ns.items()}


def test_a_gap_whose_end_was_launched_late_is_the_hosts() -> None:
    # Idle 100-900. The launch begins at 895: host 795, then 5 us of launch latency.
    row = judged()
    assert row.window_ns == 1000 * US
    assert row.compute_ns == 200 * US
    assert causes() == {"host": 795, "launch_latency": 5}


def test_the_main_threads_batch_loading_is_input() -> None:
    # 100-900 idle; loading 200-600 is input, the rest of the host's part stays host: 795 - 400.
    loading = mark("## load_batch ##", 200 * US, 600 * US)
    assert causes(loading) == {"host": 395, "input": 400, "launch_latency": 5}


def test_a_loader_thread_that_works_ahead_is_no_input_wait() -> None:
    loading = mark("## load_batch ##", 200 * US, 600 * US, lane="loader")
    assert causes(loading) == {"host": 795, "launch_latency": 5}


def test_a_gap_that_opens_under_a_synchronisation_is_host_sync_to_its_launch() -> None:
    # The host waits from 50 to 101 for the kernel that ends at 100; what it launches next comes late.
    sync = call("cudaStreamSynchronize", 50 * US, 101 * US)
    assert causes(sync) == {"host_sync": 795, "launch_latency": 5}


def test_a_synchronisation_that_was_over_long_before_the_gap_is_not_its_reason() -> None:
    # It returned at 60, 40 us before the device ran dry: more than the 10 us that connect them.
    sync = call("cudaStreamSynchronize", 40 * US, 60 * US)
    assert causes(sync) == {"host": 795, "launch_latency": 5}


def test_a_synchronisation_in_the_midst_of_a_gap_takes_its_own_time_only() -> None:
    sync = call("cudaDeviceSynchronize", 300 * US, 350 * US)
    assert causes(sync) == {"host": 745, "host_sync": 50, "launch_latency": 5}


def test_allocation_takes_its_own_time() -> None:
    assert causes(call("cudaMalloc", 300 * US, 450 * US)) == {
        "host": 645,
        "allocator": 150,
        "launch_latency": 5,
    }


def test_an_asynchronous_copy_call_does_not_synchronise() -> None:
    assert causes(call("cudaMemcpyAsync", 50 * US, 101 * US)) == {"host": 795, "launch_latency": 5}


def test_work_queued_long_ago_waits_for_a_dependency() -> None:
    # The second kernel was launched at 150 and starts at 500: 20 us latency, then 330 us dependency.
    # Before: 100-150 host. After: 510-900 with its launch at 895, host 385 and latency 5.
    assert causes(work(500, 510, 150, 7)) == {"host": 50 + 385, "launch_latency": 20 + 5, "dependency": 330}


def test_latency_and_dependency_part_at_twenty_us() -> None:
    # Launched at 480, starts at 500: exactly 20 us of latency. Launched at 479: 1 us is dependency.
    assert "dependency" not in causes(work(500, 510, 480, 7))
    assert causes(work(500, 510, 479, 7))["dependency"] == 1


def test_a_gap_inside_a_cuda_graph_is_not_explained() -> None:
    # One launch at 150 stands for kernels at 200 and 700: what lies between may be unrecorded work.
    graph = [
        call("cudaGraphLaunch", 150 * US, 151 * US, 7),
        kernel(GEMM, 200 * US, 300 * US, 7),
        kernel(GEMM, 700 * US, 800 * US, 7),
    ]
    # 100-150 host, 150-170 latency, 170-200 dependency; 300-700 unknown; 800-895 host, 895-900 latency.
    assert causes(graph) == {
        "host": 50 + 95, "launch_latency": 25, "dependency": 30, "unattributed": 400,
    }  # fmt: skip


def test_a_gap_before_work_without_a_launch_is_not_explained() -> None:
    assert causes(kernel(GEMM, 500 * US, 510 * US)) == {"host": 385, "launch_latency": 5, "unattributed": 400}


def test_copies_are_no_idle_time_and_lie_below_compute() -> None:
    # Copy 50-300: 50-100 is hidden under compute, 200 us are exposed. Its launch took place at 45.
    rows = launched(copy("Memcpy HtoD", 50 * US, 300 * US, 7), 45 * US)
    row = judged(rows)
    assert row.exposed_copy_ns == 200 * US
    assert row.idle_ns == (1000 - 200 - 200) * US


def test_nothing_marks_input_where_the_loader_has_no_annotation() -> None:
    assert "input" not in causes(operator("aten::stack", 200 * US, 600 * US))
