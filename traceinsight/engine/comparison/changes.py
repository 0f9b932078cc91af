"""From samples per step to a change, its bounds, and whether it is more than noise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from traceinsight.base.shift import shift_interval
from traceinsight.base.statistics import median
from traceinsight.diagnosis import CommunicationRow, Partition
from traceinsight.diagnosis.comparison import Change, CommunicationChange, PartChange
from traceinsight.engine.comparison.samples import PARTS, Side, idle_cause

MIN_CHANGE_SHARE = 0.01
"""Share of the step time before. Two runs of one configuration differ by more than their steps show (clocks,
placement, caches), so a smaller change is none however still the steps are."""

MIN_COVERAGE = 0.9
"""Least coverage of an interval that may be called significant: three steps against three have it."""


def change(before: Sequence[float], after: Sequence[float], step_ns: float | None) -> Change:
    """A change of medians with its interval. ``step_ns``: the step time before, for the share."""
    if not before or not after:
        return not_measured(before, after)
    middle = median(before), median(after)
    difference = middle[1] - middle[0]
    found = shift_interval(before, after)
    low, high = min(found.low, difference), max(found.high, difference)
    reason = _too_few(len(before), len(after), found.coverage)
    share = difference / step_ns if step_ns else None
    beyond_noise = low > 0 or high < 0
    return Change(
        before_ns=round(middle[0]),
        after_ns=round(middle[1]),
        change_ns=round(difference),
        low_ns=None if reason else round(low),
        high_ns=None if reason else round(high),
        coverage=None if reason else found.coverage,
        share=share,
        low_share=None if reason or not step_ns else low / step_ns,
        high_share=None if reason or not step_ns else high / step_ns,
        judged=reason is None,
        significant=reason is None and beyond_noise and share is not None and abs(share) >= MIN_CHANGE_SHARE,
        reason=reason,
    )


def not_measured(before: Sequence[float], after: Sequence[float], reason: str | None = None) -> Change:
    """No difference, because one run has no such number."""
    missing = " and ".join(name for name, own in (("before", before), ("after", after)) if not own)
    return Change(
        before_ns=round(median(before)) if before else None,
        after_ns=round(median(after)) if after else None,
        change_ns=None,
        low_ns=None,
        high_ns=None,
        coverage=None,
        share=None,
        low_share=None,
        high_share=None,
        judged=False,
        significant=False,
        reason=reason or f"not measured {missing}",
    )


def _too_few(before: int, after: int, coverage: float) -> str | None:
    if min(before, after) > 1 and coverage >= MIN_COVERAGE:
        return None
    counted = " and ".join("one step" if count == 1 else f"{count} steps" for count in (before, after))
    return f"{counted} say nothing about the noise; capture at least 3 in each run"


def part_changes(before: Side, after: Side, step_ns: float | None) -> list[PartChange]:
    """The six parts of the step window."""
    return [_part(name, part, before, after, step_ns) for name, part in PARTS.items()]


def idle_changes(before: Side, after: Side, step_ns: float | None) -> list[PartChange]:
    """The causes of idle time that occur in either run."""
    causes = dict.fromkeys([*before.idle_causes(), *after.idle_causes()])
    return [_part(cause, idle_cause(cause), before, after, step_ns) for cause in causes]


def _part(
    name: str, part: Callable[[Partition], float], before: Side, after: Side, step_ns: float | None
) -> PartChange:
    return PartChange(
        part=name,
        before_share=_share(before, part),
        after_share=_share(after, part),
        change=change(before.part_ns(part), after.part_ns(part), step_ns),
    )


def _share(side: Side, part: Callable[[Partition], float]) -> float | None:
    windows = sum(side.part_ns(lambda row: row.window_ns))
    return sum(side.part_ns(part)) / windows if windows else None


def communication_changes(before: Side, after: Side, step_ns: float | None) -> list[CommunicationChange]:
    """Kinds of collectives side by side, largest exposed time first."""
    kinds = [
        {(row.op, row.label, row.phase): row for row in side.diagnosis.communication}
        for side in (before, after)
    ]
    rows = []
    for key in dict.fromkeys([*kinds[0], *kinds[1]]):
        one, other = kinds[0].get(key), kinds[1].get(key)
        exposed = _exposed((before, one), (after, other), step_ns)
        rows.append(CommunicationChange(before=one, after=other, exposed=exposed))
    return sorted(rows, key=lambda row: -max(one.exposed_ns for one in (row.before, row.after) if one))


_OfKind = tuple[Side, CommunicationRow | None]


def _exposed(before: _OfKind, after: _OfKind, step_ns: float | None) -> Change:
    typical = [[row.exposed_ns] if row else [] for _, row in (before, after)]
    if before[1] is None or after[1] is None:
        return not_measured(typical[0], typical[1], "only one run has this kind of collective")
    samples = before[0].exposed_ns(before[1]), after[0].exposed_ns(after[1])
    if samples[0] is None or samples[1] is None:
        return not_measured(
            typical[0], typical[1], "a document of an older version does not give it per step"
        )
    return change(samples[0], samples[1], step_ns)
