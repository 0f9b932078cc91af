"""The answer of ``traceinsight whatif`` as a document, and as text for a terminal or a pipe."""

from __future__ import annotations

from traceinsight.base.units import format_factor, format_ns, format_share
from traceinsight.diagnosis.prediction import PredictedEdit, WhatIf
from traceinsight.report.document import Block, Column, Document, Paragraph, Section, Table
from traceinsight.report.formats import FORMATS
from traceinsight.report.options import ReportOptions
from traceinsight.report.text import NAME_LIMIT, clean

SLOWER = 0.995
"""A speedup below this is called slower; nearer to 1 it is no change."""

_SMALLEST_SHOWN = 1e-9
"""A residual of exactly nothing is shown as less than the smallest share, not as "within 0%"."""

_NO_REPLAY = "A prediction needs measured steps that a replay can explain."
_DOES_NOT_APPLY = "does not apply"


def render_what_if(answer: WhatIf, options: ReportOptions) -> str:
    """Text as wide as the screen at most: today's step, then each edit on top of the ones before."""
    return FORMATS["terminal"].draw(build_what_if(answer), options)


def build_what_if(answer: WhatIf) -> Document:
    """The step with all edits first, then what each of them does."""
    if answer.step_ns is None:
        reason = f"Nothing is predicted: {answer.replay.reason}."
        return Document(reason, _NO_REPLAY, (), "how it is predicted: docs/prediction.md")
    share = format_share(answer.replay.residual_share or _SMALLEST_SHOWN)
    return Document(
        verdict=_verdict(answer),
        basis="Today: measured, from the end of one step's work to that of the next, mean over steps. "
        f"Replayed from causes alone, a step is within {share} of the measured one.",
        sections=(_edits(answer),) if answer.edits else (),
        footer="how it is predicted: docs/prediction.md · how far to trust it: docs/accuracy.md",
    )


def _verdict(answer: WhatIf) -> str:
    today = f"A step takes {format_ns(answer.step_ns)} today"
    steps = [edit.step_ns for edit in answer.edits if edit.step_ns is not None]
    factors = [one for one in answer.speedups_per_example() if one is not None]
    if not steps or not factors:
        return f"{today}; no edit applies to this run." if answer.edits else f"{today}."
    low, high = format_ns(steps[-1].low), format_ns(steps[-1].high)
    what = "the edit" if len(steps) == 1 else f"the {len(steps)} edits that apply"
    fast = f"{format_factor(factors[-1][1])} as fast{' per example' if _grows(answer) else ''}"
    return f"{today}; with {what} {format_ns(steps[-1].expected)} is predicted ({low} to {high}), {fast}."


def _grows(answer: WhatIf) -> bool:
    """Whether an edit changes the number of examples per step."""
    return any(edit.per_example_factor != 1 for edit in answer.edits)


def _edits(answer: WhatIf) -> Section:
    speedups = answer.speedups_per_example()
    table = Table(
        caption="Predicted, each edit on top of the ones before it",
        columns=(Column("edit", name=True), *map(Column, ("step", "interval", "alone", "in all"))),
        rows=tuple(_row(edit, factors) for edit, factors in zip(answer.edits, speedups, strict=True)),
        legend="alone: speedup against the line above; in all: against today."
        + (
            " Where a step has more examples (batch, nodes), speedups are per example."
            if _grows(answer)
            else ""
        ),
        wide_key=True,
    )
    said: list[Block] = [Paragraph(text) for edit in answer.edits for text in _said_of(edit)]
    return Section("What each edit does", (table, *said))


def _row(edit: PredictedEdit, speedups: tuple[float, float] | None) -> tuple[str, ...]:
    name = clean(edit.edit, NAME_LIMIT)
    if edit.step_ns is None or speedups is None:
        return name, _DOES_NOT_APPLY, "", "", ""
    return (
        name,
        format_ns(edit.step_ns.expected),
        f"{format_ns(edit.step_ns.low)} to {format_ns(edit.step_ns.high)}",
        *map(format_factor, speedups),
    )


def _said_of(edit: PredictedEdit) -> list[str]:
    """Why it does not apply, or what it had to assume; and in words where it slows the step down."""
    name, said = clean(edit.edit, NAME_LIMIT), edit.not_applicable or edit.detail
    found = [f"{name}: {said}."] if said else []
    if _is_slower(edit):
        what = "each example takes longer" if edit.per_example_factor != 1 else "the step takes longer"
        found.append(f"{name} slows this run down: {what}.")
    return found


def _is_slower(edit: PredictedEdit) -> bool:
    return edit.speedup is not None and edit.speedup.expected * edit.per_example_factor < SLOWER
