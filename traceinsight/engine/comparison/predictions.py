"""What was predicted for the applied edits, beside what the run with them measured."""

from __future__ import annotations

from collections.abc import Sequence

from traceinsight.diagnosis import Diagnosis, NanosecondRange
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
    """The same from the roadmap that a report holds; None where it does not begin with these edits.

    The roadmap's speedups are per example, so a larger batch lengthens the step by its own factor.
    """
    planned = [entry for entry in before.roadmap if entry.edit is not None][: len(edits)]
    if not before_ns or [entry.edit for entry in planned] != list(edits):
        return None
    rows, growth = [], 1.0
    for entry in planned:
        edit = parse_edit(entry.edit or "")
        growth *= edit.factor if isinstance(edit, LargerBatch) else 1.0
        speedup = entry.cumulative_speedup
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
