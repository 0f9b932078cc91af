"""Kernels that wait until a large kernel of another stream leaves room on the device."""

from typing import Any

import pytest

from tests.replay.jobs import starts
from tests.replay.test_gpu_rank import one_rank, work
from tests.trace.recordings import MS, US

LARGE = work("large", 100 * US, 1100 * US, 96 * US, 1)  # 1 ms on stream 7


def small(start: int, launched_at: int, stream: int = 20) -> tuple[Any, ...]:
    return work("small", start, start + 50 * US, launched_at, 2, stream)


def test_what_starts_in_the_last_wave_waited_for_it() -> None:
    # Ready at 200 us, started at 1,000 us: 100 us, a tenth, before the large kernel's end.
    run = one_rank(LARGE, small(1000 * US, 196 * US), end=2 * MS)
    found = starts(*run, {"large": 500 * US})
    assert found[0, "small"] == 500 * US  # still 100 us before the end, which is now at 600 us
    assert starts(*run, {"large": 1500 * US})[0, "small"] == 1500 * US


def test_nothing_starts_before_its_launch_because_there_is_room() -> None:
    run = one_rank(LARGE, small(1000 * US, 196 * US), end=2 * MS)
    assert starts(*run, {"large": 1 * US})[0, "small"] == 200 * US


@pytest.mark.parametrize(
    "other",
    [
        small(850 * US, 196 * US),  # a quarter of the large kernel was still to come
        small(1000 * US, 960 * US),  # it was ready only 36 us before
        small(1000 * US, 20 * US),  # it was ready 76 us before the large kernel began
    ],
    ids=["too early", "promptly", "ready before"],
)
def test_other_starts_beside_a_large_kernel_have_another_reason(other: tuple[Any, ...]) -> None:
    run = one_rank(LARGE, other, end=2 * MS)
    unedited = starts(*run)[0, "small"]
    assert starts(*run, {"large": 2000 * US})[0, "small"] == unedited


def test_a_kernel_that_is_not_large_holds_nobody_up() -> None:
    run = one_rank(work("short", 100 * US, 190 * US, 96 * US, 1), small(185 * US, 100 * US), end=2 * MS)
    assert starts(*run, {"short": 900 * US})[0, "small"] == 185 * US


def test_two_kernels_of_one_stream_do_not_wait_for_room() -> None:
    run = one_rank(LARGE, small(1100 * US, 196 * US, stream=7), end=2 * MS)
    assert starts(*run, {"large": 500 * US})[0, "small"] == 600 * US
