"""Lenient conversion of JSON values that should be integers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traceinsight.trace.recording import MISSING, Int64

MAX_RANKS = 1_000_000
"""More ranks than any job has; a larger count or number is a mistake of whoever wrote it."""

_INT64_MAX = 2**63 - 1
_MAX_DIGITS = 24


def to_int(value: object) -> int | None:
    """The integer a JSON value stands for (5, 5.0, "5"), up to 64 bits; None for anything else."""
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _MAX_DIGITS or not text.lstrip("-").isdecimal() or not text.isascii():
            return None
        try:
            return to_int(int(text))
        except ValueError:
            return None
    if isinstance(value, float):
        return int(value) if value.is_integer() and abs(value) <= _INT64_MAX else None
    if isinstance(value, int) and not isinstance(value, bool) and -_INT64_MAX <= value <= 2 * _INT64_MAX + 1:
        return value
    return None


def int64_column(values: Sequence[object]) -> Int64:
    """A column; what is no 64-bit integer becomes ``MISSING``."""
    if set(map(type, values)) <= {int}:
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            pass
    return np.array([_or_missing(value) for value in values], dtype=np.int64)


def _or_missing(value: object) -> int:
    number = to_int(value)
    return MISSING if number is None or number > _INT64_MAX else number
