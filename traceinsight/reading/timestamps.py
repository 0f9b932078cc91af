"""Microseconds as written in the file to int64 nanoseconds, exact to the digit.

``6322354329901.737`` is 13 digits before a 3-digit fraction: as a float64 it is off by less than half a
nanosecond, so splitting off the whole part (exact) and rounding the rest is exact. ``1712195918012345.678``
is not: from 2**43 microseconds on only the text helps.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal, InvalidOperation

import numpy as np
from numpy.typing import NDArray

from traceinsight.trace.recording import Int64

Flags = NDArray[np.bool_]

FLOAT_EXACT_BELOW_US = 2.0**43
"""Below this a float64 is within 0.49 ns of what the text says."""

MAX_US = 9_000_000_000_000_000
"""Just under int64 nanoseconds; the year 2255 as an absolute time."""

_MAX_NUMBER_TEXT = 64
_NANOS_PER_MICRO = 1000


def from_numbers(values: Sequence[object]) -> tuple[Int64, Flags] | None:
    """Nanoseconds and a "could be read" flag per value, or None where only the text is exact enough."""
    types = set(map(type, values))
    if types <= {int}:
        return _from_integers(values)
    if not types <= {int, float}:
        return None
    try:
        micros = np.array(values, dtype=np.float64)
    except OverflowError:
        return None
    if np.abs(micros).max(initial=0.0) >= FLOAT_EXACT_BELOW_US:
        return None
    whole = np.floor(micros)
    nanos = whole * _NANOS_PER_MICRO + np.rint((micros - whole) * _NANOS_PER_MICRO)
    return nanos.astype(np.int64), np.ones(len(micros), dtype=np.bool_)


def _from_integers(values: Sequence[object]) -> tuple[Int64, Flags] | None:
    try:
        micros = np.array(values, dtype=np.int64)
    except OverflowError:
        return None
    readable = (micros >= -MAX_US) & (micros <= MAX_US)
    return np.where(readable, micros, 0) * _NANOS_PER_MICRO, readable


def from_texts(texts: Sequence[bytes]) -> tuple[Int64, Flags]:
    """Nanoseconds and a "could be read" flag per number as it stands in the file (maybe in quotes)."""
    cleaned = [text.strip(b'" \t\r\n') for text in texts]
    if not cleaned:
        return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.bool_)
    simple = np.array([len(text) <= _MAX_NUMBER_TEXT for text in cleaned], dtype=np.bool_)
    padded = np.array([text if ok else b"" for text, ok in zip(cleaned, simple, strict=True)])
    nanos, readable = _from_plain_digits(padded)
    for row in np.flatnonzero(~readable & simple):
        nanos[row], readable[row] = _from_decimal(cleaned[row])
    return nanos, readable


def _from_plain_digits(padded: NDArray[np.bytes_]) -> tuple[Int64, Flags]:
    """Rows that are ``digits[.digits]``, all at once, one column of text at a time; others are flagged."""
    width = max(padded.dtype.itemsize, 1)
    letters = padded.astype(f"S{width}").view(np.uint8).reshape(len(padded), width)
    value = np.zeros(len(padded), dtype=np.int64)
    whole_digits = np.zeros(len(padded), dtype=np.int64)
    fraction_digits = np.zeros(len(padded), dtype=np.int64)
    round_up = np.zeros(len(padded), dtype=np.bool_)
    after_dot = np.zeros(len(padded), dtype=np.bool_)
    ended = np.zeros(len(padded), dtype=np.bool_)
    plain = np.ones(len(padded), dtype=np.bool_)
    for column in range(width):
        letter = letters[:, column]
        is_digit = (letter >= ord("0")) & (letter <= ord("9"))
        is_dot = (letter == ord(".")) & ~after_dot
        ended |= letter == 0
        plain &= is_digit | is_dot | ended
        counts = is_digit & plain & (~after_dot | (fraction_digits < 3)) & (whole_digits <= 16)
        round_up |= is_digit & after_dot & (fraction_digits == 3) & (letter >= ord("5"))
        value = np.where(counts, value * 10 + (letter.astype(np.int64) - ord("0")), value)
        whole_digits += is_digit & ~after_dot
        fraction_digits += is_digit & after_dot
        after_dot |= is_dot
    # 15 whole digits and 3 of the fraction always fit; a 16th fits while the whole part stays under MAX_US.
    missing = 3 - np.minimum(fraction_digits, 3)
    scale = np.array([1, 10, 100, 1000], dtype=np.int64)
    fits = (whole_digits <= 15) | ((whole_digits == 16) & (letters[:, 0] < ord("9")))
    plain &= (whole_digits > 0) & fits & (~after_dot | (fraction_digits > 0))
    nanos = np.where(plain, value, 0) * scale[missing] + (round_up & plain)
    return nanos, plain


def _from_decimal(text: bytes) -> tuple[int, bool]:
    """One unusual number: negative, with an exponent, or not a number at all."""
    try:
        micros = Decimal(text.decode("ascii"))
    except (InvalidOperation, UnicodeDecodeError):
        return 0, False
    if not micros.is_finite() or (micros and micros.adjusted() >= 16) or abs(micros) > MAX_US:
        return 0, False
    if micros.adjusted() < -6:  # far below a nanosecond; also keeps 1e-999999 from being expanded
        return 0, True
    return int((micros * _NANOS_PER_MICRO).to_integral_value()), True
