"""TOST, two one-sided t-tests, decides whether the difference of two means lies inside a margin.

D. J. Schuirmann, "A comparison of the two one-sided tests procedure and the power approach ...", Journal of
Pharmacokinetics and Biopharmaceutics 15 (1987). A plain t-test would not do: that it finds no difference may
only say that there were too few seeds.
"""

from __future__ import annotations

import math
import statistics
from dataclasses import dataclass


@dataclass(frozen=True)
class Comparison:
    """Everything relative to A's mean: 0.001 is 0.1 %.

    ``low`` to ``high`` is the interval of confidence 1 - 2 alpha that lies inside the margin exactly if both
    one-sided tests reject at alpha = 1 - confidence.
    """

    difference: float
    low: float
    high: float
    p_value: float
    degrees: int
    equivalent: bool


def compare_pairs(a: list[float], b: list[float], margin: float, confidence: float) -> Comparison:
    """Compare b with a, pair by pair (the same seed); at least two pairs."""
    differences = [y - x for x, y in zip(a, b, strict=True)]
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    return _judge(
        statistics.mean(differences), error, len(differences) - 1, statistics.mean(a), margin, confidence
    )


def compare(a: list[float], b: list[float], margin: float, confidence: float) -> Comparison:
    """Compare b with a, independent samples of at least two each (Welch: spreads may differ)."""
    parts = [statistics.variance(side) / len(side) for side in (a, b)]
    total = sum(parts)
    bottom = sum(part**2 / (len(side) - 1) for part, side in zip(parts, (a, b), strict=True))
    # Welch and Satterthwaite's degrees, rounded down: fewer degrees ask for more evidence. They are never
    # below those of the smaller side, except by the last digit of the division.
    least = min(len(a), len(b)) - 1
    degrees = max(least, math.floor(total**2 / bottom)) if bottom else len(a) + len(b) - 2
    difference = statistics.mean(b) - statistics.mean(a)
    return _judge(difference, math.sqrt(total), degrees, statistics.mean(a), margin, confidence)


def _judge(
    difference: float, error: float, degrees: int, base: float, margin: float, confidence: float
) -> Comparison:
    difference, error = difference / base, error / base
    if error == 0:  # e.g. two runs of one program: every pair differs by the same
        p_value = 0.0 if abs(difference) < margin else 1.0
    else:
        p_value = 1 - student_cdf((margin - abs(difference)) / error, degrees)
    half = student_quantile(confidence, degrees) * error
    return Comparison(
        difference, difference - half, difference + half, p_value, degrees, p_value < 1 - confidence
    )


def student_cdf(t: float, degrees: int) -> float:
    """Return the probability of less than ``t`` under Student's distribution with whole ``degrees``.

    The finite series of Abramowitz and Stegun, 26.7.3 and 26.7.4.
    """
    theta = math.atan(t / math.sqrt(degrees))
    cosine = math.cos(theta)
    if degrees % 2:
        total, term = 0.0, cosine
        for k in range(1, degrees - 1, 2):
            total += term
            term *= cosine**2 * (k + 1) / (k + 2)
        inside = 2 / math.pi * (theta + math.sin(theta) * total)
    else:
        total, term = 0.0, 1.0
        for k in range(0, degrees - 1, 2):
            total += term
            term *= cosine**2 * (k + 1) / (k + 2)
        inside = math.sin(theta) * total
    return (1 + inside) / 2


def student_quantile(probability: float, degrees: int) -> float:
    """Return t with ``student_cdf(t, degrees) == probability``, for 0.5 < probability < 1, by bisection."""
    low, high = 0.0, 1.0
    while student_cdf(high, degrees) < probability:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if student_cdf(middle, degrees) < probability else (low, middle)
    return high
