"""What larger sizes would bring, from how the lost time has grown so far.

The lost time per step is fitted as ``growth x g(m)`` with m = world size / smallest world size, through 0 at
the smallest run, by least squares. The shapes g are those of known costs; of all but the fastest the one that
leaves least is kept. The interval joins its prediction interval with what the next slower and the next faster
growing shape say: a few runs cannot tell neighbouring shapes apart, however well one of them fits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from traceinsight.base.units import format_share
from traceinsight.diagnosis.scaling import Estimate, ForecastModel, ForecastPoint, ScalingPoint

BEYOND_IDEAL_EFFICIENCY = 1.1
"""Noise and caches give a few percent; from here on the runs are hardly one job."""

Shape = Literal["saturating", "logarithmic", "linear", "quadratic"]

AHEAD = (2, 4)
"""Sizes that are forecast, as multiples of the largest run."""

FORECAST_INTERVAL = 0.9
"""Nominal coverage of the interval."""

REPEATABLE_SHARE = 0.02
"""Half the interval is at least this share of the step: no better do two captures of one job agree."""

_T_QUANTILES = (6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812)
"""Student's t at 0.95, so that both sides leave ``FORECAST_INTERVAL``, for 1, 2, ... degrees of freedom."""


@dataclass(frozen=True, slots=True)
class _Growth:
    formula: str
    of: Callable[[float], float]


# The share of an exchange that leaves the node; trees of messages, the latest of m ranks; messages or bytes
# per rank that grow with the ranks; all pairs that meet at one place (the coherency of Gunther's USL).
SHAPES: Mapping[Shape, _Growth] = MappingProxyType(
    {
        "saturating": _Growth("1 - 1/m", lambda m: 1 - 1 / m),
        "logarithmic": _Growth("log2(m)", math.log2),
        "linear": _Growth("m - 1", lambda m: m - 1),
        "quadratic": _Growth("m (m - 1)", lambda m: m * (m - 1)),
    }
)
"""From the slowest growing to the fastest. Neighbours in this order are each other's uncertainty; the last
bounds the interval and is never expected: extrapolated, it is far off wherever a few runs suggest it."""

WITHOUT_RESIDUAL: Shape = "logarithmic"
"""Taken for two runs, which every shape fits."""


@dataclass(frozen=True, slots=True)
class Forecast:
    """Points and their model, or the reason why there are none."""

    points: tuple[ForecastPoint, ...] = ()
    model: ForecastModel | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class _Fit:
    """Least squares of one shape. ``residual``: ns per degree of freedom; None with a single point."""

    shape: Shape
    growth: float
    residual: float | None
    squares: float
    count: int

    def at(self, m: float) -> float:
        """Lost time, ns."""
        return self.growth * SHAPES[self.shape].of(m)

    def half_width(self, m: float) -> float | None:
        """Of the prediction interval, ns."""
        if self.residual is None:
            return None
        t = _T_QUANTILES[min(self.count - 1, len(_T_QUANTILES)) - 1]
        return t * self.residual * math.sqrt(1 + SHAPES[self.shape].of(m) ** 2 / self.squares)


def forecast(points: Sequence[ScalingPoint]) -> Forecast:
    """Forecast two and four times the largest size; the first point is the base."""
    reason = _impossible(points)
    if reason is not None:
        return Forecast(reason=reason)
    base, last = points[0], points[-1]
    fits = [_fit(shape, points) for shape in SHAPES]
    best = min(fits[:-1], key=lambda fit: (fit.residual or 0.0, fit.shape != WITHOUT_RESIDUAL))
    least_ns = min(point.step_ns for point in points)
    ahead = []
    for factor in AHEAD:
        m = last.ideal * factor
        lost = _range(best, fits, m, base.step_ns)
        step = [None if one is None else max(base.step_ns + one, least_ns) for one in lost]
        ahead.append(_point(base, last, factor, step))
    model = ForecastModel(
        shape=best.shape,
        formula=SHAPES[best.shape].formula,
        growth_ns=round(best.growth),
        residual_ns=None if best.residual is None else round(best.residual),
        fitted_runs=best.count,
        interval=FORECAST_INTERVAL,
    )
    return Forecast(tuple(ahead), model)


def _impossible(points: Sequence[ScalingPoint]) -> str | None:
    if len({point.simulated for point in points}) > 1:
        return "some runs are simulated and some are measured"
    if len({point.device for point in points}) > 1:
        return "the runs used different devices"
    if len({point.batch_per_rank for point in points} - {None}) > 1:
        return "the batch per rank differs between the runs, so the loss is not a function of size alone"
    if any(point.efficiency > BEYOND_IDEAL_EFFICIENCY for point in points):
        return (
            f"a run is beyond {format_share(BEYOND_IDEAL_EFFICIENCY)} of ideal, so something besides size "
            "made it quicker"
        )
    return None


def _fit(shape: Shape, points: Sequence[ScalingPoint]) -> _Fit:
    """Through 0 at the base."""
    at = [(SHAPES[shape].of(point.ideal), point.lost_ns) for point in points[1:]]
    squares = sum(g * g for g, _ in at)
    growth = sum(g * lost for g, lost in at) / squares
    rest = sum((lost - growth * g) ** 2 for g, lost in at)
    residual = math.sqrt(rest / (len(at) - 1)) if len(at) > 1 else None
    return _Fit(shape, growth, residual, squares, len(at))


def _range(
    best: _Fit, fits: Sequence[_Fit], m: float, base_ns: int
) -> tuple[float, float | None, float | None]:
    """Expected, lowest and highest lost time, ns; no interval with a single point."""
    expected, half = best.at(m), best.half_width(m)
    if half is None:
        return expected, None, None
    half = max(half, REPEATABLE_SHARE * (base_ns + expected))
    at = fits.index(best)
    near = [fit.at(m) for fit in fits[max(at - 1, 0) : at + 2]]
    return expected, min(expected - half, *near), max(expected + half, *near)


def _point(
    base: ScalingPoint, last: ScalingPoint, factor: int, step_ns: Sequence[float | None]
) -> ForecastPoint:
    expected, shortest, longest = step_ns
    assert expected is not None
    ideal = last.ideal * factor
    world = last.world_size * factor

    def per_step(numerator: float) -> Estimate:
        """Of what falls as the step grows: the longest step gives the least."""
        return Estimate(
            expected=numerator / expected,
            low=numerator / longest if longest else None,
            high=numerator / shortest if shortest else None,
        )

    batch = last.batch_per_rank
    return ForecastPoint(
        world_size=world,
        nodes=None if last.nodes is None else last.nodes * factor,
        ideal=ideal,
        step_ns=Estimate(expected=expected, low=shortest, high=longest),
        throughput_ratio=per_step(base.step_ns * ideal),
        efficiency=per_step(base.step_ns),
        examples_per_s=None if batch is None else per_step(batch * world * 1e9),
    )
