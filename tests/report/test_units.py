"""Numbers for people, each answer worked out by hand."""

import pytest

from traceinsight.base.units import (
    format_bytes,
    format_count,
    format_factor,
    format_gbps,
    format_ns,
    format_ranks,
    format_share,
)

NOT_A_NUMBER = float("nan")


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (None, "n/a"),
        (NOT_A_NUMBER, "n/a"),
        (float("inf"), "n/a"),
        (0, "0 ns"),
        (1, "1 ns"),
        (12.5, "12.5 ns"),  # a median of two whole numbers
        (999, "999 ns"),
        (999.6, "1.00 us"),  # 1000 ns once rounded: no unit has four digits before the point
        (1_000, "1.00 us"),
        (999_499, "999 us"),
        (999_500, "1.00 ms"),
        (8_606_500, "8.61 ms"),
        (156_000_000, "156 ms"),
        (-45_612_345, "-45.6 ms"),
        (1_500_000_000, "1.50 s"),
        (999_600_000_000, "1,000 s"),
        (16_712_000_000_000, "16,700 s"),
    ],
)
def test_durations(duration_ns: float | None, text: str) -> None:
    assert format_ns(duration_ns) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [
        (None, "n/a"),
        (0, "0 B"),
        (96, "96 B"),
        (65_536, "65.5 kB"),
        (1_000_000 * 128 * 4, "512 MB"),  # a million FP32 vectors of 128
        (512_000_000_000, "512 GB"),
        (-2_048, "-2.05 kB"),
        (3 * 10**18, "3,000 PB"),
    ],
)
def test_sizes_are_decimal(size_bytes: float | None, text: str) -> None:
    assert format_bytes(size_bytes) == text


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (None, "n/a"),
        (NOT_A_NUMBER, "n/a"),
        (0, "0%"),
        (0.0009, "<0.1%"),
        (0.001, "0.1%"),
        (0.785, "78.5%"),
        (0.9994, "99.9%"),
        (0.99999, "99.9%"),  # something was missing from the whole
        (1, "100%"),
        (1.5, "150.0%"),
        (-0.25, "-25.0%"),
        (-0.0002, "-<0.1%"),
    ],
)
def test_shares_are_zero_or_all_only_when_exact(share: float | None, text: str) -> None:
    assert format_share(share) == text


@pytest.mark.parametrize(
    ("gbps", "text"),
    [(None, "n/a"), (24.0715, "24.1 GB/s"), (5.65e-5, "56.5 kB/s"), (450.0, "450 GB/s"), (0.0, "0 B/s")],
)
def test_bandwidths(gbps: float | None, text: str) -> None:
    assert format_gbps(gbps) == text


@pytest.mark.parametrize(
    ("factor", "text"), [(None, "n/a"), (1.2920587, "1.29x"), (1, "1.00x"), (20.04, "20.0x"), (0, "0x")]
)
def test_factors(factor: float | None, text: str) -> None:
    assert format_factor(factor) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(None, "n/a"), (0, "0"), (0.04, "<0.1"), (8.0, "8"), (164.125, "164.1"), (1_234_567, "1,234,567")],
)
def test_counts(count: float | None, text: str) -> None:
    assert format_count(count) == text


@pytest.mark.parametrize(
    ("ranks", "text"),
    [
        ([], "none"),
        ([3], "3"),
        ([1, 0], "0, 1"),  # two neighbours are no shorter as a range
        ([0, 1, 4, 5, 6, 9], "0, 1, 4-6, 9"),
        (range(2, 128), "2-127"),
        ([5, 5, 5], "5"),
    ],
)
def test_runs_of_ranks_are_compressed(ranks: list[int], text: str) -> None:
    assert format_ranks(ranks) == text


def test_ranks_that_do_not_fit_are_counted() -> None:
    # 0, 2, ..., 126 are 64 ranks, 3 are named.
    assert format_ranks(range(0, 128, 2), max_parts=3) == "0, 2, 4 and 61 more"
    # 10-19 is one part of ten ranks.
    assert format_ranks([0, 2, *range(10, 20)], max_parts=2) == "0, 2 and 10 more"
