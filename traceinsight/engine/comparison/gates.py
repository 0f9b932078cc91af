"""Limits that a pipeline sets: what may not have become worse."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from traceinsight.base.errors import UsageError
from traceinsight.base.units import format_share
from traceinsight.diagnosis.comparison import Change, GateResult

Metric = Literal["regression", "exposed-comm", "idle"]
METRICS: tuple[Metric, ...] = ("regression", "exposed-comm", "idle")
_WORDS = {"regression": "the step", "exposed-comm": "exposed communication", "idle": "idle time"}


_PERCENTAGE = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?%", re.ASCII)  # float() takes more: 1_0, inf, 1e3


@dataclass(frozen=True, slots=True)
class Limit:
    """How much a metric may grow, as share of the step time before."""

    metric: Metric
    share: float


def parse_limit(text: str) -> Limit:
    """Read ``regression=5%``.

    Raises:
        UsageError: The metric is unknown, or the limit is no percentage from 0 to 1000.

    """
    name, _, value = text.partition("=")
    metric = next((one for one in METRICS if one == name.strip()), None)
    if metric is None:
        raise UsageError(
            f"--fail-on {text!r} names no metric.",
            what_to_do=f"Write METRIC=LIMIT%, METRIC one of {', '.join(METRICS)}: --fail-on regression=5%.",
        )
    number = value.strip()
    percent = float(number.removesuffix("%")) if _PERCENTAGE.fullmatch(number) else math.nan
    if not 0 <= percent <= 1000:
        raise UsageError(
            f"--fail-on {text!r}: the limit must be a percentage from 0% to 1000%.",
            what_to_do=f"Write --fail-on {metric}=5%: growth against the step time before.",
        )
    return Limit(metric, percent / 100)


def judge(limits: Sequence[Limit], changes: dict[Metric, Change]) -> list[GateResult]:
    """One result per limit. What cannot be judged does not pass: a gate that never looks guards nothing."""
    return [_judge(limit, changes[limit.metric]) for limit in limits]


def _judge(limit: Limit, found: Change) -> GateResult:
    what = _WORDS[limit.metric]
    allowed = f"limit {format_share(limit.share)} of the step time before"
    outcome: Literal["passed", "failed", "not_judged"] = "passed"
    if not found.judged or found.share is None:
        outcome, reason = (
            "not_judged",
            f"{what} cannot be judged: {found.reason or 'the step before is empty'}",
        )
    elif found.share <= limit.share:
        reason = f"{what} changed by {format_share(found.share)}, {allowed}"
    elif found.significant:
        outcome, reason = "failed", f"{what} grew by {format_share(found.share)}, {allowed}"
    else:
        reason = f"{what} grew by {format_share(found.share)}, above the {allowed}, but inside the noise"
    return GateResult(
        metric=limit.metric, limit_share=limit.share, change_share=found.share, outcome=outcome, reason=reason
    )
