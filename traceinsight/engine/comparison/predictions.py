"""What was predicted for the applied edits, beside what the run with them measured."""

from __future__ import annotations

from collections.abc import Sequence

from traceinsight.diagnosis import Diagnosis, Interval, NanosecondRange
from traceinsight.diagnosis.comparison import HeldPrediction
from traceinsight.diagnosis.prediction import PredictedEdit, WhatIf
from traceinsight.replay.edits.network import LargerBatch
from traceinsight.replay.edits.registry import parse_edit
from traceinsight.replay.predict import LONGEST_STEP_NS


def hold_predictions(
    answer: WhatIf, edits: Sequence[str], before_ns: int | None, after_ns: int | None
) -> list[HeldPrediction]:
    """Hold the prediction with all edits against the measured step.

    Replay measures a step from the end of its work to the end of the next one's, a comparison by its window.
    Only the ratio is taken from the replay, so that predicted and measured are the same quantity.
    """
    if answer.step_ns is None or not before_ns:
        reason = answer.replay.reason or "the step time of BEFORE was not measured"
        return [_row(edit, None, reason) for edit in edits]
    scale = before_ns / max(answer.step_ns, 1)
    rows = [_row(edit.edit, _scaled(edit, scale), edit.not_applicable) for edit in answer.edits]
    held = [index for index, row in enumerate(rows) if row.step_ns is not None]
    if held and after_ns:
        rows[held[-1]] = _held(rows[held[-1]], after_ns)
    return rows


def recorded_predictions(
    before: Diagnosis, edits: Sequence[str], before_ns: int | None, after_ns: int | None
) -> list[HeldPrediction] | None:
    """The same from what a report holds; None where it holds no prediction for these edits.

    Its roadmap, where that begins with them; a single edit, where the gain of a finding is that edit's alone.
    Both give speedups per example, so a larger batch lengthens the step by its own factor.
    """
    planned: list[tuple[str, Interval | None]] = [
        (entry.edit, entry.cumulative_speedup) for entry in before.roadmap if entry.edit is not None
    ]
    planned = planned[: len(edits)]
    alone = _alone(before, edits[0]) if len(edits) == 1 else None
    if [edit for edit, _ in planned] != list(edits):
        planned = [(edits[0], alone)] if alone is not None else []
    if not before_ns or len(planned) != len(edits):
        return None
    rows, growth = [], 1.0
    for text, speedup in planned:
        edit = parse_edit(text)
        growth *= edit.factor if isinstance(edit, LargerBatch) else 1.0
        if speedup is None or not 0 < speedup.low <= speedup.expected <= speedup.high:
            return None
        times_ns = [before_ns * growth / one for one in (speedup.high, speedup.expected, speedup.low)]
        if max(times_ns) > LONGEST_STEP_NS:
            return None
        low, expected, high = map(round, times_ns)
        rows.append(_row(edit.text, NanosecondRange(low=low, expected=expected, high=high), None))
    if rows and after_ns:
        rows[-1] = _held(rows[-1], after_ns)
    return rows


def _alone(before: Diagnosis, edit: str) -> Interval | None:
    """The replayed speedup of one edit on BEFORE; a report that does not say of which edit has but one."""
    for finding in before.findings:
        gain = finding.gain
        if gain is not None and gain.kind == "replayed":
            replayed = [gain.edit] if gain.edit is not None else finding.edits
            if replayed == [edit]:
                return gain.speedup
    return None


def _scaled(edit: PredictedEdit, scale: float) -> NanosecondRange | None:
    if edit.step_ns is None:
        return None
    low, expected, high = (
        round(one * scale) for one in (edit.step_ns.low, edit.step_ns.expected, edit.step_ns.high)
    )
    return NanosecondRange(low=low, expected=expected, high=high)


def _row(edit: str, step_ns: NanosecondRange | None, reason: str | None) -> HeldPrediction:
    return HeldPrediction(
        edit=edit,
        step_ns=step_ns,
        measured_ns=None,
        error_share=None,
        inside_interval=None,
        not_predicted=reason,
    )


def _held(row: HeldPrediction, after_ns: int) -> HeldPrediction:
    assert row.step_ns is not None
    return HeldPrediction(
        edit=row.edit,
        step_ns=row.step_ns,
        measured_ns=after_ns,
        error_share=row.step_ns.expected / after_ns - 1,
        inside_interval=row.step_ns.low <= after_ns <= row.step_ns.high,
        not_predicted=None,
    )
