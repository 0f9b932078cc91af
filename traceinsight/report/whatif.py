"""The answer of ``traceinsight whatif``, for a terminal or a pipe."""

from __future__ import annotations

from textwrap import wrap

from traceinsight.base.units import format_factor, format_ns, format_share
from traceinsight.diagnosis.prediction import PredictedEdit, WhatIf


def render_what_if(answer: WhatIf) -> str:
    """Plain text, at most 80 columns: today's step, then each edit on top of the ones before."""
    if answer.step_ns is None:
        return f"Nothing is predicted: {answer.replay.reason}.\n"
    lines = [f"A step takes {format_ns(answer.step_ns)} today (measured, median over ranks and steps)."]
    if answer.edits:
        lines += ["Predicted, each edit on top of the ones before it:", "", _HEADER]
        lines += [_row(edit) for edit in answer.edits]
        for edit in answer.edits:
            lines += _said_of(edit)
    share = format_share(answer.replay.residual_share)
    lines += ["", f"Replayed from causes alone, a step is within {share} of the measured one."]
    lines += [_EXAMPLES] if any(edit.per_example_factor != 1 for edit in answer.edits) else []
    return "\n".join(lines) + "\n"


def _said_of(edit: PredictedEdit) -> list[str]:
    """Why it does not apply, or what it had to assume; and in words where it slows the step down."""
    said = edit.not_applicable or edit.detail
    found = (
        wrap(f"{edit.edit}: {said}.", WIDTH, initial_indent="  ", subsequent_indent="    ") if said else []
    )
    if _is_slower(edit):
        what = "each example takes longer" if edit.per_example_factor != 1 else "the step takes longer"
        found.append(f"  {edit.edit} slows this run down: {what}.")
    return found


def _is_slower(edit: PredictedEdit) -> bool:
    return edit.speedup is not None and edit.speedup.expected * edit.per_example_factor < SLOWER


WIDTH = 80
_HEADER = f"{'edit':<26}{'step':>10}{'interval':>24}{'alone':>9}{'in all':>9}"
_EXAMPLES = "Where a step has more examples (batch, nodes), speedups are per example."


def _row(edit: PredictedEdit) -> str:
    if edit.step_ns is None or edit.speedup is None or edit.cumulative_speedup is None:
        return f"{edit.edit:<26}{'does not apply':>24}"
    interval = f"{format_ns(edit.step_ns.low)} to {format_ns(edit.step_ns.high)}"
    grown = edit.per_example_factor
    return (
        f"{edit.edit:<26}{format_ns(edit.step_ns.expected):>10}{interval:>24}"
        f"{format_factor(edit.speedup.expected * grown):>9}"
        f"{format_factor(edit.cumulative_speedup.expected * grown):>9}"
    )


SLOWER = 0.995
"""A speedup below this is called slower; nearer to 1 it is no change."""
