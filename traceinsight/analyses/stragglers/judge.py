"""Which groups of ranks are established as stragglers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from traceinsight.analyses.stragglers.absence import as_if_absent_came
from traceinsight.analyses.stragglers.arrivals import Arrivals, arrivals_by_step
from traceinsight.analyses.stragglers.cause import cause_of
from traceinsight.analyses.stragglers.detail import describe
from traceinsight.analyses.stragglers.freed import FreedTime
from traceinsight.analyses.stragglers.overload import NO_TABLES, Overload, TableFacts, overload_of
from traceinsight.analyses.stragglers.suspects import (
    Suspects,
    typical_ceiling_ns,
    weighted_quantile,
    worst_group,
)
from traceinsight.base.units import format_ranks
from traceinsight.diagnosis import NanosecondRange, Partition, Straggler, typical_step_ns
from traceinsight.trace.activity import Activity
from traceinsight.trace.trace_set import TraceSet

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

MIN_TELLING_SHARE = 0.5
"""Fewer steps that tell whether the suspects are late are no sample of the run: then all count."""

MAX_GROUPS = 6
"""Groups looked at, worst first. Whoever has more late groups than that has no late group but a slow job."""


@dataclass(frozen=True, slots=True)
class StragglerJudgement:
    """``stragglers`` is empty when none is established; ``not_judged`` says why nothing could be said."""

    stragglers: tuple[Straggler, ...]
    not_judged: str | None


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
    search = _Search(trace_set, partition, FreedTime(trace_set, activity), tables)
    found = search.groups([as_if_absent_came(step).only_comparable() for step in steps])
    if found:
        return StragglerJudgement(found, None)
    held_up = search.groups([step.only_comparable() for step in steps])
    return StragglerJudgement((), _why_open(trace_set, held_up))


def _why_nothing(trace_set: TraceSet) -> str:
    if trace_set.missing_ranks:
        return f"{_not_captured(trace_set)}: the late one may be among them"
    if any(one.synchronising and one.step in trace_set.steps for one in trace_set.collectives):
        return "no collective of the analysed steps could be matched across ranks"
    return "no collective that all ranks must meet at was recorded in the analysed steps"


def _why_open(trace_set: TraceSet, held_up: Sequence[Straggler]) -> str | None:
    """Why nobody can be blamed although somebody may be late; None where all is known."""
    if held_up:
        ranks = held_up[0].ranks
        who = f"ranks {format_ranks(ranks)} come" if len(ranks) > 1 else f"rank {ranks[0]} comes"
        return (
            f"{who} late, but after collectives in which the part of another rank is missing and may have "
            "been waited for"
        )
    if trace_set.missing_ranks:
        return f"{_not_captured(trace_set)} and may be late; of the others none is"
    return None


def _not_captured(trace_set: TraceSet) -> str:
    count = len(trace_set.missing_ranks)
    return f"{count} of {trace_set.world_size} ranks {'was' if count == 1 else 'were'} not captured"


@dataclass(frozen=True, slots=True)
class _Search:
    """Looks for late groups in one run."""

    trace_set: TraceSet
    partition: Sequence[Partition]
    freed: FreedTime
    tables: TableFacts

    def groups(self, steps: Sequence[Arrivals]) -> tuple[Straggler, ...]:
        """The established groups, worst first."""
        window_ns = typical_step_ns(self.partition) or 0.0
        found: list[Straggler] = []
        for _ in range(MAX_GROUPS):
            suspects = worst_group(steps, self.freed)
            if suspects is None or (found and len(steps) < MIN_STEPS_TO_REPEAT):
                break
            straggler = _establish(
                suspects, self.trace_set, window_ns, steps, self.freed, self.partition, self.tables
            )
            if straggler is not None:
                found.append(straggler)
            elif len(steps) < MIN_STEPS_TO_REPEAT:
                break
            # Whether established or not, the worst group must not hide the next one.
            steps = [step.mended(suspects.ranks) for step in steps]
        return tuple(found)


def _establish(
    suspects: Suspects,
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
    freed_ns = suspects.freed_ns[_judged(suspects, needed)]
    late_steps, judged_steps = int((freed_ns >= needed).sum()), len(freed_ns)
    persistence = _persistence(late_steps, judged_steps)
    if persistence == "transient" and (late_steps < 2 or judged_steps < MIN_STEPS_FOR_TRANSIENT):
        return None
    # What comes and goes costs its mean; the median would call it nothing, or all.
    typical = np.mean if persistence == "transient" else np.median
    ceiling = float(typical(freed_ns))
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
        confidence=_confidence(persistence, judged_steps, expected, residual),
        persistence=persistence,
        steps_late=late_steps,
        steps_judged=judged_steps,
        behind_median_ns=round(suspects.behind_median_ns),
        detail=describe(suspects.ranks, cause, excess_ns, overload.sentence, alone),
        tables=list(overload.tables),
    )


def _judged(suspects: Suspects, needed_ns: float) -> NDArray[np.bool_]:
    """The steps that say whether the group is late: not those in which it may look in time for a lost part.

    All steps where that would leave fewer than half of them.
    """
    telling = (suspects.freed_ns >= needed_ns) | (suspects.hidden_ns < needed_ns)
    return telling if telling.mean() >= MIN_TELLING_SHARE else np.ones_like(telling)


def _freed_by_last_alone(
    ranks: Sequence[int], steps: Sequence[Arrivals], freed: FreedTime
) -> tuple[int, int] | None:
    """Of a group: the rank that is last most often, and what mending it alone would free (ns)."""
    if len(ranks) < 2:
        return None
    alone = {rank: typical_ceiling_ns([rank], steps, freed) for rank in ranks}
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
