"""Series long enough to leave the quick path, times at zero, and clocks that disagree."""

import pytest

from tests.trace.recordings import GEMM, kernel, launched, recording, step
from tests.trace.test_matching import MS, ends, parts, truth
from traceinsight.trace.launches import launch_of_gpu_events
from traceinsight.trace.matching import match_collectives
from traceinsight.trace.steps import find_steps


@pytest.mark.parametrize("count", [900, 1100, 2500])
@pytest.mark.parametrize("ahead_ns", [0, 40 * MS])
def test_long_series_match_as_well_as_short_ones(count: int, ahead_ns: int) -> None:
    true_ends = ends(count)
    lossy = parts(true_ends, without=[count // 2], ahead_ns=ahead_ns)
    found = match_collectives({0: parts(true_ends), 1: lossy, 2: parts(true_ends)})
    assert sum(len(truth(match)) > 1 for match in found) == 0  # no collective mixes two


def test_matches_are_in_order_of_time_whatever_the_clocks() -> None:
    lost, ahead = {0: [3], 1: [], 2: []}, {0: 0, 1: 30 * MS, 2: 0}
    by_rank = {rank: parts(ends(), without=lost[rank], ahead_ns=ahead[rank]) for rank in lost}
    assert [truth(match) for match in match_collectives(by_rank)] == [{index} for index in range(12)]


@pytest.mark.parametrize("shift", [0, 1])
def test_time_zero_is_a_time(shift: int) -> None:
    events = [launched(kernel(GEMM, 0, 50, 1), -5), launched(kernel(GEMM, 120, 130, 2), 110)]
    one = recording(step(0, -10, 100), step(1, 100, 200), *events, shift_ns=shift)
    assert find_steps(one, launch_of_gpu_events(one)).steps[0].window_ns == (shift, 120 + shift)


@pytest.mark.parametrize("shift", [0, 1])
def test_a_gpu_only_recording_may_begin_at_zero(shift: int) -> None:
    one = recording(kernel(GEMM, 0, 9), shift_ns=shift)
    assert find_steps(one, launch_of_gpu_events(one)).steps[0].window_ns == (shift, 9 + shift)
