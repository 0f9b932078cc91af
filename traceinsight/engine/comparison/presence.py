"""Findings and stragglers that came, went or stayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from traceinsight.diagnosis import Diagnosis
from traceinsight.diagnosis.comparison import FindingChange, Presence, StragglerChange

_STRAGGLER = "straggler"
_Item = TypeVar("_Item")


def finding_changes(before: Diagnosis, after: Diagnosis) -> list[FindingChange]:
    """Findings of both runs; the same rule about ranks of which one is shared is the same finding."""
    unjudged = [{one.rule for one in run.not_judged} for run in (before, after)]
    return [
        FindingChange(
            presence=_presence(one, other, [rule in rules for rules in unjudged]), before=one, after=other
        )
        for one, other in _paired(
            before.findings,
            after.findings,
            lambda one, other: one.rule == other.rule and _meet(one.ranks, other.ranks),
        )
        for rule in [(one or other).rule]  # type: ignore[union-attr]  # one of a pair is there
    ]


def straggler_changes(before: Diagnosis, after: Diagnosis) -> list[StragglerChange]:
    """Groups of late ranks in both runs; groups that share a rank are the same."""
    unjudged = [any(one.rule == _STRAGGLER for one in run.not_judged) for run in (before, after)]
    return [
        StragglerChange(presence=_presence(one, other, unjudged), before=one, after=other)
        for one, other in _paired(
            before.stragglers, after.stragglers, lambda one, other: _meet(one.ranks, other.ranks)
        )
    ]


def _meet(one: Sequence[int], other: Sequence[int]) -> bool:
    return not one or not other or bool(set(one) & set(other))


def _paired(
    before: Sequence[_Item], after: Sequence[_Item], same: Callable[[_Item, _Item], bool]
) -> list[tuple[_Item | None, _Item | None]]:
    left = list(after)
    pairs: list[tuple[_Item | None, _Item | None]] = []
    for one in before:
        other = next((index for index, candidate in enumerate(left) if same(one, candidate)), None)
        pairs.append((one, left.pop(other) if other is not None else None))
    return [*pairs, *((None, other) for other in left)]


def _presence(before: object | None, after: object | None, unjudged: Sequence[bool]) -> Presence:
    if before is not None and after is not None:
        return "stayed"
    if before is None:
        return "not_judged_before" if unjudged[0] else "appeared"
    return "not_judged_after" if unjudged[1] else "vanished"
