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
