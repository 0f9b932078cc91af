"""How far one small sample lies from another: the Hodges-Lehmann interval of a shift, exact for few samples.

The interval is the one that belongs to the Mann-Whitney test (Hollander and Wolfe, Nonparametric Statistical
Methods, chapter 4): of all differences between a value after and a value before, sorted, cut as many at both
ends as the distribution of the rank sum allows. No distribution is assumed, and one odd sample moves little.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

CONFIDENCE = 0.95
"""Share of cases in which the interval should hold the true shift."""

EXACT_UP_TO = 40
"""Samples per side up to which the rank sum is counted out; beyond, the normal approximation is as good."""

MOST_SAMPLES = 1_000
"""Samples per side that are looked at; more are thinned evenly by size, which bounds memory."""

_Z = 1.959964  # 0.975 quantile of the normal distribution


@dataclass(frozen=True, slots=True)
class Shift:
    """Bounds of ``after - before``. ``coverage``: share of cases in which such bounds hold the true shift."""

    low: float
    high: float
    coverage: float


def shift_interval(before: Sequence[float], after: Sequence[float]) -> Shift:
    """The narrowest interval with at least ``CONFIDENCE``, else the widest there is with its lower coverage.

    Raises:
        ValueError: A sample is empty.

    """
    if not len(before) or not len(after):
        raise ValueError("shift of no samples")
    first, second = _bounded(before), _bounded(after)
    differences = np.sort(np.subtract.outer(second, first), axis=None)
    cut, coverage = _cut(len(first), len(second))
    return Shift(float(differences[cut]), float(differences[-1 - cut]), coverage)


def _bounded(samples: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    values = np.asarray(samples, dtype=np.float64)
    if len(values) <= MOST_SAMPLES:
        return values
    return np.quantile(values, np.linspace(0, 1, MOST_SAMPLES))


def _cut(n: int, m: int) -> tuple[int, float]:
    """(differences to cut at each end, coverage)."""
    if max(n, m) > EXACT_UP_TO:
        spread = _Z * math.sqrt(n * m * (n + m + 1) / 12)
        return max(0, math.floor(n * m / 2 - spread)), CONFIDENCE
    counts = _rank_sums(n, m)
    total = math.comb(n + m, n)
    cut, below = 0, counts[0]
    while 1 - 2 * (below + counts[cut + 1]) / total >= CONFIDENCE:
        cut += 1
        below += counts[cut]
    return cut, max(0.0, 1 - 2 * below / total)


@cache
def _rank_sums(n: int, m: int) -> tuple[int, ...]:
    """In how many orders of n and m distinct values a second one precedes a first one 0, 1, ... n*m times.

    The coefficients of the Gaussian binomial: multiply by 1 - x^(m+i), divide by 1 - x^i, for i up to n.
    """
    counts = [1] + [0] * (n * m)
    for i in range(1, n + 1):
        for at in range(n * m, m + i - 1, -1):
            counts[at] -= counts[at - m - i]
        for at in range(i, n * m + 1):
            counts[at] += counts[at - i]
    return tuple(counts)
