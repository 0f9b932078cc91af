"""Numbers for people: three significant digits, always a unit, and words where nothing was measured.

Bytes are decimal (1 MB = 1,000,000 B), as network and memory vendors state bandwidths.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

NOT_MEASURED = "n/a"
"""Stands for None and NaN; never "0", which would be a measurement."""

_TIME_UNITS = (("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9))
_BYTE_UNITS = tuple((unit, 1000.0**power) for power, unit in enumerate(("B", "kB", "MB", "GB", "TB", "PB")))
_SMALLEST_SHARE = 0.001


def format_ns(duration_ns: float | None) -> str:
    """A duration: ``0 ns``, ``512 ns``, ``1.23 us``, ``-45.6 ms``, ``16,700 s``."""
    return _scaled(duration_ns, _TIME_UNITS)


def format_bytes(size_bytes: float | None) -> str:
    """A size: ``96 B``, ``65.5 kB``, ``512 MB``."""
    return _scaled(size_bytes, _BYTE_UNITS)


def format_share(share: float | None) -> str:
    """A share (0..1) as percent with one decimal: ``0%``, ``<0.1%``, ``58.3%``, ``100%``.

    Only an exact 0 or 1 is written so: "0.0%" for three nanoseconds would say that nothing was there.
    """
    if share is None or not math.isfinite(share):
        return NOT_MEASURED
    size, sign = abs(share), "-" if share < 0 else ""
    if size in {0.0, 1.0}:
        return f"{sign}{size:.0%}"
    if size < _SMALLEST_SHARE:
        return f"{sign}<0.1%"
    if 1 - _SMALLEST_SHARE / 2 <= size < 1:
        return f"{sign}99.9%"
    return f"{sign}{size:,.1%}"


def format_gbps(gigabytes_per_second: float | None) -> str:
    """A bandwidth given in GB/s, in the unit that fits: ``24.1 GB/s``, ``5.65 MB/s``."""
    if gigabytes_per_second is None or not math.isfinite(gigabytes_per_second):
        return NOT_MEASURED
    return f"{format_bytes(gigabytes_per_second * 1e9)}/s"


def format_factor(factor: float | None) -> str:
    """A speedup or another ratio: ``1.32x``."""
    if factor is None or not math.isfinite(factor):
        return NOT_MEASURED
    return f"{_three_digits(factor)}x"


def format_count(count: float | None) -> str:
    """A count, which may be a mean: ``8``, ``164.1``, ``12,345``."""
    if count is None or not math.isfinite(count):
        return NOT_MEASURED
    rounded = round(count, 1)
    if rounded == 0 and count > 0:
        return "<0.1"
    return f"{rounded:,.0f}" if rounded == int(rounded) else f"{rounded:,.1f}"


def format_ranks(ranks: Iterable[int], *, max_parts: int | None = None) -> str:
    """Ranks with runs of three or more compressed: ``0, 1, 4-127``; ``none`` when empty.

    With ``max_parts``, what does not fit is counted: ``0, 2, 4 and 61 more``.
    """
    spans = list(_runs(sorted(set(ranks))))
    if not spans:
        return "none"
    parts = [part for first, last in spans for part in _run_parts(first, last)]
    if max_parts is None or len(parts) <= max_parts:
        return ", ".join(text for text, _ in parts)
    left = sum(count for _, count in parts[max_parts:])
    return f"{', '.join(text for text, _ in parts[:max_parts])} and {left:,} more"


def _run_parts(first: int, last: int) -> list[tuple[str, int]]:
    if last - first >= 2:
        return [(f"{first}-{last}", last - first + 1)]
    return [(str(rank), 1) for rank in range(first, last + 1)]


def _runs(ordered: Sequence[int]) -> Iterator[tuple[int, int]]:
    """(first, last) of each run of consecutive numbers."""
    first = last = None
    for number in ordered:
        if first is None or last is None:
            first = last = number
        elif number == last + 1:
            last = number
        else:
            yield first, last
            first = last = number
    if first is not None and last is not None:
        yield first, last


def _scaled(value: float | None, units: Sequence[tuple[str, float]]) -> str:
    """In the largest unit that leaves at least one before the point."""
    if value is None or not math.isfinite(value):
        return NOT_MEASURED
    base = units[0][0]
    # 999.6 us has four digits before the point once rounded: compare the rounded number.
    fitting = [unit for unit in units if float(f"{abs(value) / unit[1]:.3g}") >= 1] or [units[0]]
    unit, factor = fitting[-1]
    if unit == base and value == int(value):
        return f"{value:.0f} {base}"  # nothing is smaller than the base unit: no decimals to invent
    return f"{_three_digits(value / factor)} {unit}"


def _three_digits(value: float) -> str:
    """Three significant digits without exponent; more before the point are rounded, not cut."""
    rounded = float(f"{value:.3g}")
    if rounded == 0:
        return "0"
    decimals = max(0, 2 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{decimals}f}"
