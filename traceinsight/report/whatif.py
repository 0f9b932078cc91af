"""The answer of ``traceinsight whatif``, for a terminal or a pipe."""

from __future__ import annotations

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
        lines += [f"  {edit.edit}: {edit.not_applicable}" for edit in answer.edits if edit.not_applicable]
    share = format_share(answer.replay.residual_share)
    lines += ["", f"From causes alone, replay explains the measured steps to within {share} of the step."]
    lines += [_EXAMPLES] if any(edit.per_example_factor != 1 for edit in answer.edits) else []
    return "\n".join(lines) + "\n"


_HEADER = f"{'edit':<26}{'step':>10}{'interval':>24}{'alone':>9}{'in all':>9}"
_EXAMPLES = "A larger batch has more examples per step: its speedups are per example."


def _row(edit: PredictedEdit) -> str:
    if edit.step_ns is None or edit.speedup is None or edit.cumulative_speedup is None:
        return f"{edit.edit:<26}{'does not apply':>24}"
    interval = f"{format_ns(edit.step_ns.low)} to {format_ns(edit.step_ns.high)}"
    grown = edit.per_example_factor
    slower = "  slower" if edit.speedup.expected * grown < SLOWER else ""
    return (
        f"{edit.edit:<26}{format_ns(edit.step_ns.expected):>10}{interval:>24}"
        f"{format_factor(edit.speedup.expected * grown):>9}"
        f"{format_factor(edit.cumulative_speedup.expected * grown):>9}{slower}"
    )


SLOWER = 0.995
"""A speedup below this is called slower; nearer to 1 it is no change."""
