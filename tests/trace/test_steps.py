"""Where steps begin and end, by every way of finding them."""

from tests.trace.recordings import (
    GEMM,
    US,
    call,
    kernel,
    launched,
    mark,
    operator,
    recording,
    step,
)
from traceinsight.trace.launches import launch_of_gpu_events
from traceinsight.trace.recording import Recording
from traceinsight.trace.steps import Steps, find_steps


def steps_of(*rows: object) -> Steps:
    return in_recording(recording(*rows))


def in_recording(one: Recording) -> Steps:
    return find_steps(one, launch_of_gpu_events(one))


def windows(steps: Steps) -> list[tuple[int, int]]:
    return [one.window_ns for one in steps.steps]


def test_a_device_window_runs_from_first_launched_to_first_launched_in_the_next_step() -> None:
    steps = steps_of(
        step(4, 0, 100), step(5, 100, 220), step(6, 220, 350),
        # The GPU runs 50 ns behind: work of step 4 is still running when step 5 begins on the host.
        launched(kernel(GEMM, 50, 90, 1), 10), launched(kernel(GEMM, 90, 140, 2), 20),
        launched(kernel(GEMM, 160, 200, 3), 110), launched(kernel(GEMM, 300, 310, 4), 230),
    )  # fmt: skip
    assert [one.number for one in steps.steps] == [4, 5, 6]
    assert steps.source == "ProfilerStep"
    # Nothing follows step 6: its window is as long as its CPU step, 350 - 220 = 130.
    assert windows(steps) == [(50, 160), (160, 300), (300, 430)]


def test_a_launch_belongs_to_its_step_whatever_the_device_does() -> None:
    one = recording(
        step(0, 0, 100), step(1, 100, 200),
        launched(kernel("late", 150, 160, 1), 90), launched(kernel("own", 170, 180, 2), 110),
        launched(kernel("before", 10, 20, 3), -5), launched(kernel("after", 300, 310, 4), 200),
        call("cudaStreamSynchronize", 99, 130),
    )  # fmt: skip
    by_name = {one.name_of(event): int(index) for event, index in enumerate(in_recording(one).of_event)}
    # -1 is before the first captured step, 2 = len(steps) after the last.
    assert (by_name["late"], by_name["own"], by_name["before"], by_name["after"]) == (0, 1, -1, 2)
    assert by_name["cudaStreamSynchronize"] == 0  # it starts in step 0


def test_gpu_work_without_a_launch_belongs_where_it_starts_on_the_device() -> None:
    one = recording(
        step(0, 0, 100), step(1, 100, 200),
        launched(kernel("first of 0", 150, 160, 1), 10), launched(kernel("first of 1", 250, 260, 2), 110),
        kernel("before any", 120, 130), kernel("in 0", 170, 180), kernel("in 1", 270, 280),
    )  # fmt: skip
    by_name = {one.name_of(event): int(index) for event, index in enumerate(in_recording(one).of_event)}
    assert (by_name["before any"], by_name["in 0"], by_name["in 1"]) == (-1, 0, 1)


def test_the_annotation_mirrored_on_the_gpu_is_no_step_mark() -> None:
    steps = steps_of(step(3, 0, 100), launched(kernel(GEMM, 40, 60, 1), 10))
    assert windows(steps) == [(40, 140)]


def test_a_step_without_gpu_work_has_no_device_window() -> None:
    steps = steps_of(
        step(0, 0, 100), step(1, 100, 200), step(2, 200, 300),
        launched(kernel(GEMM, 20, 30, 1), 10), launched(kernel(GEMM, 220, 230, 2), 210),
    )  # fmt: skip
    assert [one.device_start_ns for one in steps.steps] == [20, None, 220]
    # Step 0 lasts until the next GPU work that any later step launched.
    assert windows(steps) == [(20, 220), (100, 200), (220, 320)]


def test_without_profiler_steps_the_ends_of_optimizer_calls_bound_them() -> None:
    steps = steps_of(
        [mark("Optimizer.step#SGD.step", end - 10, end) for end in (100, 200, 300, 400)],
        [mark("## forward ##", end + 10, end + 50) for end in (100, 200, 300)],
        operator("aten::mm", 0, 5),
    )  # fmt: skip
    assert steps.source == "end of Optimizer.step#SGD.step"
    assert windows(steps) == [(100, 200), (200, 300), (300, 400)]
    assert steps.marked


def test_else_the_recurring_annotation_that_covers_most_time() -> None:
    steps = steps_of(
        [mark(f"## forward {at} ##", 100 * at, 100 * at + 60) for at in range(4)],
        [mark("## load_batch ##", 100 * at + 70, 100 * at + 80) for at in range(4)],
    )
    assert steps.source == "start of ## forward ##"
    assert windows(steps) == [(0, 100), (100, 200), (200, 300)]


def test_what_occurs_twice_is_no_step() -> None:
    steps = steps_of([mark("Optimizer.step#SGD.step", at, at + 10) for at in (100, 200)])
    assert steps.source == "whole recording"
    assert not steps.marked
    assert windows(steps) == [(100, 210)]


def test_a_recording_of_the_gpu_alone_is_one_window() -> None:
    steps = steps_of(kernel(GEMM, 100, 200), kernel(GEMM, 500, 900))
    assert windows(steps) == [(100, 900)]
    assert steps.main_lane is None


def test_an_empty_recording_has_no_steps() -> None:
    steps = steps_of()
    assert (steps.steps, steps.source, steps.marked) == ((), "none", False)


def test_the_main_thread_is_the_one_with_the_step_marks() -> None:
    one = recording(
        step(0, 0, 100), [operator("aten::mm", at, at + 5, lane="loader") for at in range(0, 90, 10)]
    )
    lane = in_recording(one).main_lane
    assert lane is not None
    assert one.lanes[lane].tid == "main"


def test_a_gpu_event_shared_by_no_launch_is_missing_not_the_first() -> None:
    one = recording(
        call("cudaLaunchKernel", 0, US, 7), kernel("known", 10, 20, 7), kernel("stray", 30, 40, 8)
    )
    launch = {one.name_of(event): int(found) for event, found in enumerate(launch_of_gpu_events(one))}
    assert launch == {"cudaLaunchKernel": -1, "known": 0, "stray": -1}


def test_kernels_of_a_cuda_graph_share_their_launch() -> None:
    one = recording(call("cudaGraphLaunch", 0, US, 7), kernel("a", 10, 20, 7), kernel("b", 30, 40, 7))
    assert launch_of_gpu_events(one).tolist() == [-1, 0, 0]
