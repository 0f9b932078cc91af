"""The roadmap: which change to make first, and what the next one brings on what it leaves.

Greedy: of the changes that bring enough, the easiest kind comes first, and of that kind the one that brings
most; then everything is predicted again with it applied. A setting that gains a third comes before a new
parallelism that gains half, since it is there tomorrow; one that gains a fraction of what another change
would does not. Gains are never added.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from traceinsight.diagnosis import Finding
from traceinsight.replay.edits.edit import Edit, NotApplicableError
from traceinsight.replay.edits.registry import parse_edit
from traceinsight.replay.predict import Bench, Prediction

MIN_GAIN_SHARE = 0.02
"""Share of the step a change must gain to be named: below it, nobody could tell the gain from noise."""

WORTH_SHARE = 0.05
"""Share of the step that a remedy must gain by replay where the rule's own measure is below its threshold: as
much as most rules ask of their measure."""

ENOUGH_OF_BEST = 0.2
"""Share of the best change's gain that an easier one must bring to come before it: whoever has a day for one
change makes the one that counts, unless a good part of it is to be had at once."""

EFFORTS = ("setting", "placement", "model", "parallelism")
"""What a change asks for, easiest first: a setting or a mended machine; other owners for the same tables; a
model that must be trained and judged again; a new layout of the whole job."""

_EFFORT_OF = {"balance": "placement", "narrow": "model", "batch": "model", "2d": "parallelism"}


@dataclass(frozen=True, slots=True)
class Change:
    """One edit for one rule, with the prediction with all changes before it (``before``) and with it."""

    rule: str
    edit: Edit
    before: Prediction
    after: Prediction

    @property
    def gain_share(self) -> float:
        """Time per example that it saves, as share of that before it; negative if it costs time."""
        return 1 - self.after.per_example_ns / self.before.per_example_ns


def effort_of(edit: Edit) -> str:
    """One of ``EFFORTS``."""
    return _EFFORT_OF.get(_name(edit), EFFORTS[0])


def alone(bench: Bench, findings: Iterable[Finding]) -> dict[str, Change]:
    """For each rule whose remedy can be replayed: its best edit, applied alone to today's run."""
    today = bench.predict([])
    found: dict[str, Change] = {}
    for change in _changes(bench, _edits(findings), [], today):
        best = found.get(change.rule)
        if best is None or change.gain_share > best.gain_share:
            found[change.rule] = change
    return found


def plan(bench: Bench, findings: Sequence[Finding]) -> list[Change]:
    """The changes in the order to make them; empty when none gains ``MIN_GAIN_SHARE``."""
    open_edits = _edits(findings)
    made: list[Change] = []
    now = bench.predict([])
    while (best := _next(bench, open_edits, [change.edit for change in made], now)) is not None:
        made.append(best)
        now = best.after
        open_edits = [
            (rule, edit) for rule, edit in open_edits if rule != best.rule and _name(edit) != _name(best.edit)
        ]
    return made


def _next(
    bench: Bench, open_edits: Sequence[tuple[str, Edit]], made: list[Edit], now: Prediction
) -> Change | None:
    """The best change of the easiest kind that has one worth making."""
    changes = _changes(bench, open_edits, made, now)
    most = max((change.gain_share for change in changes), default=0.0)
    enough = [one for one in changes if one.gain_share >= max(MIN_GAIN_SHARE, ENOUGH_OF_BEST * most)]
    return min(enough, key=lambda one: (EFFORTS.index(effort_of(one.edit)), -one.gain_share), default=None)


def _edits(findings: Iterable[Finding]) -> list[tuple[str, Edit]]:
    return [(finding.rule, parse_edit(text)) for finding in findings for text in finding.edits]


def _changes(
    bench: Bench, open_edits: Sequence[tuple[str, Edit]], made: list[Edit], now: Prediction
) -> list[Change]:
    changes = []
    for rule, edit in open_edits:
        try:
            changes.append(Change(rule, edit, now, bench.predict([*made, edit])))
        except NotApplicableError:
            continue  # nothing left of what it would mend
    return changes


def _name(edit: Edit) -> str:
    return edit.text.partition("=")[0]
