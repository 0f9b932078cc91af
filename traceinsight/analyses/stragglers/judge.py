"""Which groups of ranks are established as stragglers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from traceinsight.analyses.stragglers.arrivals import Arrivals, arrivals_by_step
from traceinsight.analyses.stragglers.cause import cause_of
from traceinsight.analyses.stragglers.detail import describe
from traceinsight.analyses.stragglers.freed import FreedTime
from traceinsight.analyses.stragglers.overload import NO_TABLES, Overload, TableFacts, overload_of
from traceinsight.diagnosis import NanosecondRange, Partition, Straggler, typical_step_ns
from traceinsight.trace.activity import Activity
from traceinsight.trace.trace_set import TraceSet

TOGETHER_SHARE = 0.5
"""A rank is late together with the worst one if it shares at least this much of its lateness."""

MIN_CEILING_SHARE = 0.02
"""Below this share of a step nobody would act on it, and ordinary jitter reaches it."""

RESIDUAL_FACTOR = 1.0
"""Lateness must exceed the clock residual of the ranks compared times this."""

PERSISTENT_SHARE = 0.6
"""Late in at least this share of the steps: more than chance, less than always."""

MIN_STEPS_TO_REPEAT = 3
"""Fewer steps cannot tell a second, smaller straggler from chance."""

MIN_STEPS_FOR_TRANSIENT = 5
"""Among fewer steps, two late ones are no more than chance."""

MAX_GROUPS = 6
"""Groups looked at, worst first. Whoever has more late groups than that has no late group but a slow job."""


@dataclass(frozen=True, slots=True)
class StragglerJudgement:
    """``stragglers`` is empty when none is established; ``not_judged`` says why nothing could be said."""

    stragglers: tuple[Straggler, ...]
    not_judged: str | None


@dataclass(frozen=True, slots=True)
class _Suspects:
    """A group with its numbers, before judgement. Arrays have one entry per step."""

    ranks: tuple[int, ...]
    freed_ns: NDArray[np.float64]
    gaps_ns: NDArray[np.float64]  # of all collectives in which the group came last
    last_share: float
    behind_median_ns: float


def find_stragglers(
    trace_set: TraceSet,
    activity: Mapping[int, Activity],
    partition: Sequence[Partition],
    tables: TableFacts = NO_TABLES,
) -> StragglerJudgement:
    """Find the groups whose mending would free step time, worst first.

    ``tables`` says which tables make a group late whose lookups are what takes it longer.
    """
    steps = arrivals_by_step(trace_set)
    if len(trace_set.ranks) < 2:
        return StragglerJudgement((), "one rank was captured: lateness needs the others to compare with")
    if not steps:
        return StragglerJudgement((), _why_nothing(trace_set))
    freed = FreedTime(trace_set, activity)
    window_ns = typical_step_ns(partition) or 0.0
    found: list[Straggler] = []
    for _ in range(MAX_GROUPS):
        suspects = _worst_group(steps, freed)
        if suspects is None or (found and len(steps) < MIN_STEPS_TO_REPEAT):
            break
        straggler = _establish(suspects, trace_set, window_ns, steps, freed, partition, tables)
        if straggler is not None:
            found.append(straggler)
        elif len(steps) < MIN_STEPS_TO_REPEAT:
            break
        # Whether established or not, the worst group must not hide the next one.
        steps = [step.mended(suspects.ranks) for step in steps]
    return StragglerJudgement(tuple(found), None)


def _why_nothing(trace_set: TraceSet) -> str:
    if trace_set.missing_ranks:
        return (
            f"{len(trace_set.missing_ranks)} of {trace_set.world_size} ranks were not captured: "
            "the late one may be among them"
        )
    return "no collective that all ranks must meet at was recorded in the analysed steps"


def _worst_group(steps: Sequence[Arrivals], freed: FreedTime) -> _Suspects | None:
    """The rank with most lateness behind the median, with those that share at least half of it."""
    late = np.concatenate([np.nan_to_num(np.maximum(step.lag_ns(), 0)) for step in steps])
    total = late.sum(axis=0)
    worst = int(total.argmax())
    if total[worst] <= 0:
        return None
    shared = np.minimum(late, late[:, [worst]]).sum(axis=0) / total[worst]
    members = _together(shared)
    ranks = tuple(steps[0].ranks[column] for column in members.tolist())
    gaps = np.concatenate([step.gaps_ns(ranks) for step in steps])
    lags = np.concatenate([step.lag_ns()[:, members] for step in steps])
    last = gaps > 0
    return _Suspects(
        ranks=ranks,
        freed_ns=np.array([freed.ceiling_ns(step, ranks) for step in steps]),
        gaps_ns=gaps[last],
        last_share=float(last.mean()),
        behind_median_ns=weighted_quantile(lags.max(axis=1)[last], 0.5) if last.any() else 0.0,
    )


def _together(shared: NDArray[np.float64]) -> NDArray[np.int64]:
    """Columns of those late together: down to the largest drop of what ranks share with the worst one.

    At most half of the ranks: a majority is not late, the others are early.
    """
    order = np.argsort(-shared, kind="stable")
    ordered = shared[order]
    sizes = [size for size in range(1, len(order) // 2 + 1) if ordered[size - 1] >= TOGETHER_SHARE]
    best = max(sizes, key=lambda size: float(ordered[size - 1] - ordered[size]), default=1)
    return np.sort(order[:best])


def _establish(
    suspects: _Suspects,
    trace_set: TraceSet,
    window_ns: float,
    steps: Sequence[Arrivals],
    freed: FreedTime,
    partition: Sequence[Partition],
    tables: TableFacts,
) -> Straggler | None:
    """The straggler entry, or None when the lateness is too small, too rare or below the clock error."""
    if not len(suspects.gaps_ns):
        return None
    low, expected, high = (weighted_quantile(suspects.gaps_ns, share) for share in (0.25, 0.5, 0.75))
    residual = _residual_ns(trace_set, suspects.ranks)
    needed = max(MIN_CEILING_SHARE * window_ns, residual)
    late_steps = int((suspects.freed_ns >= needed).sum())
    persistence = _persistence(late_steps, len(steps))
    if persistence == "transient" and (late_steps < 2 or len(steps) < MIN_STEPS_FOR_TRANSIENT):
        return None
    # What comes and goes costs its mean; the median would call it nothing, or all.
    typical = np.mean if persistence == "transient" else np.median
    ceiling = float(typical(suspects.freed_ns))
    if ceiling < needed or expected <= RESIDUAL_FACTOR * residual:
        return None
    cause, excess_ns = cause_of(suspects.ranks, partition, ceiling)
    alone = _freed_by_last_alone(suspects.ranks, steps, freed)
    overload = overload_of(suspects.ranks, ceiling, tables) if cause == "compute" else Overload()
    return Straggler(
        ranks=list(suspects.ranks),
        last_share=suspects.last_share,
        lateness_ns=NanosecondRange(low=round(low), expected=round(expected), high=round(high)),
        ceiling_ns=round(ceiling),
        cause=cause,
        confidence=_confidence(persistence, len(steps), expected, residual),
        persistence=persistence,
        steps_late=late_steps,
        steps_judged=len(steps),
        behind_median_ns=round(suspects.behind_median_ns),
        detail=describe(suspects.ranks, cause, excess_ns, overload.sentence, alone),
        tables=list(overload.tables),
    )


def _freed_by_last_alone(
    ranks: Sequence[int], steps: Sequence[Arrivals], freed: FreedTime
) -> tuple[int, int] | None:
    """Of a group: the rank that is last most often, and what mending it alone would free (ns)."""
    if len(ranks) < 2:
        return None
    alone = {rank: float(np.median([freed.ceiling_ns(step, [rank]) for step in steps])) for rank in ranks}
    last = max(ranks, key=lambda rank: alone[rank])
    return last, round(alone[last])


def _residual_ns(trace_set: TraceSet, group: Sequence[int]) -> float:
    """What arrival differences between the group and the rest may be off by."""
    known = [trace_set.clocks[rank].residual_ns for rank in (group if group else trace_set.clocks)]
    return float(max((value for value in known if value is not None), default=0))


def _persistence(late_steps: int, judged: int) -> Literal["persistent", "transient", "unknown"]:
    if judged < 2:
        return "unknown"
    return "persistent" if late_steps >= PERSISTENT_SHARE * judged else "transient"


def _confidence(
    persistence: str, judged: int, lateness_ns: float, residual_ns: float
) -> Literal["low", "medium", "high"]:
    if persistence != "persistent":
        return "low"
    return "high" if judged >= MIN_STEPS_TO_REPEAT and lateness_ns > 5 * residual_ns else "medium"


def weighted_quantile(values: NDArray[np.float64], share: float) -> float:
    """The quantile of positive values, each weighed by itself: by time, not by count."""
    positive = np.sort(values[values > 0])
    if not len(positive):
        return 0.0
    weight = np.cumsum(positive)
    return float(positive[np.searchsorted(weight, share * weight[-1])])
