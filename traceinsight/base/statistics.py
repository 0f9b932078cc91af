"""Robust statistics: few samples, heavy tails, no distribution assumed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

_Samples = Sequence[float] | Sequence[int] | NDArray[np.int64] | NDArray[np.float64]


def median(samples: _Samples) -> float:
    """The median; 0.0 must not stand for "no data", so an empty input raises ValueError."""
    if len(samples) == 0:
        raise ValueError("median of no samples")
    return float(np.median(np.asarray(samples)))


def quartile_range(samples: _Samples) -> tuple[float, float, float]:
    """(lower quartile, median, upper quartile); all three equal the sample if there is only one."""
    low, middle, high = np.percentile(np.asarray(samples, dtype=np.float64), [25, 50, 75])
    return float(low), float(middle), float(high)


def median_of_others(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """For each entry the median of the rest of its row; shape (n,) or (rows, n) with n > 1, no NaN."""
    count = values.shape[-1]
    order = np.argsort(values, axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=-1)
    place = np.arange(count)  # of the entry left out, in sorted order
    middle = [(count - 2) // 2, (count - 1) // 2]  # of the n - 1 that stay; equal for an odd number
    kept = [ordered[..., at + (place <= at)] for at in middle]
    found = np.empty_like(values)
    np.put_along_axis(found, order, (kept[0] + kept[1]) / 2, axis=-1)
    return found
