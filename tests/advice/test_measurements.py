"""The sums that rules share."""

import pytest

from tests.advice.factory import US, measurements
from traceinsight.advice.measurements import range_over_ranks
from traceinsight.advice.rule import ceiling, percent, severity_of
from traceinsight.diagnosis import NanosecondRange


def test_a_typical_step_is_the_median_window() -> None:
    assert measurements({}).step_ns == 1000 * US
    assert measurements({"steps": 0}).step_ns == 0.0
    assert measurements({"steps": 0}).share(5) == 0.0  # nothing is no share of nothing


def test_a_rank_stands_for_the_median_of_its_steps() -> None:
    one = measurements({"idle": {"input": [10, 20, 30, 40]}})
    assert one.per_rank(lambda row: row.idle_ns) == {0: 10 * US, 1: 20 * US, 2: 30 * US, 3: 40 * US}
    assert range_over_ranks({0: 10, 1: 20, 2: 30, 3: 40}) == NanosecondRange(low=10, expected=25, high=40)


@pytest.mark.parametrize(
    ("share", "severity"),
    [(0.0999, "minor"), (0.10, "major"), (0.2499, "major"), (0.25, "critical")],
)
def test_severity_by_share(share: float, severity: str) -> None:
    assert severity_of(share) == severity


def test_a_ceiling_is_step_now_over_step_then() -> None:
    gain = ceiling(100.0, NanosecondRange(low=0, expected=20, high=50))
    assert gain.kind == "ceiling"
    assert (gain.speedup.low, gain.speedup.expected, gain.speedup.high) == (1.0, 1.25, 2.0)


def test_no_ceiling_promises_more_than_twenty_times() -> None:
    gain = ceiling(100.0, NanosecondRange(low=95, expected=99, high=100))
    assert gain.speedup.low == gain.speedup.expected == gain.speedup.high == pytest.approx(20.0)


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.5, "50%"), (0.1, "10%"), (0.0994, "9.9%"), (0.0996, "10%"), (0.05, "5.0%"), (0, "0.0%")],
)
def test_percentages_in_titles(share: float, text: str) -> None:
    assert percent(share) == text
