"""What a finding says of its gain: its denominator, its interval, and how it stands to what was measured."""

import pytest

from traceinsight.diagnosis import Gain, Interval, NanosecondRange
from traceinsight.report.sections.findings import gain_line

MS = 1_000_000


def replayed(expected_ms: int, ceiling_ms: int | None) -> Gain:
    size = NanosecondRange(low=expected_ms * MS, expected=expected_ms * MS, high=expected_ms * MS)
    return Gain(
        kind="replayed",
        step_ns=size,
        speedup=Interval(low=1.1, expected=1.1, high=1.1),
        ceiling_ns=None if ceiling_ms is None else ceiling_ms * MS,
    )


@pytest.mark.parametrize(
    ("expected_ms", "ceiling_ms", "said"),
    [
        (7, 10, ". Of 10.0 ms that would vanish, other work takes over the rest"),
        (8, 10, ""),
        (12, 10, ""),
        (13, 10, ". More than the 10.0 ms measured: what waits behind it starts earlier, too"),
        (13, None, ""),
        (-1, 10, ""),  # it slows the step down: nothing takes over anything
    ],
)
def test_a_replayed_gain_far_from_its_ceiling_says_why(
    expected_ms: int, ceiling_ms: int | None, said: str
) -> None:
    line = gain_line(replayed(expected_ms, ceiling_ms), 100.0 * MS)
    assert line.partition("(replayed)")[2] == said
    assert f"of the 100 ms step ({expected_ms:.1f}% of it)" in line
