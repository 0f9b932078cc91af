"""The answer of ``traceinsight whatif`` as a document, and in any format."""

from __future__ import annotations

from traceinsight.base.units import format_factor, format_ns, format_share
from traceinsight.diagnosis.prediction import PredictedEdit, WhatIf
from traceinsight.report.document import Block, Column, Document, Paragraph, Section, Table
from traceinsight.report.formats import FORMATS
from traceinsight.report.json_document import to_json
from traceinsight.report.options import ReportOptions
from traceinsight.report.sections import data_quality, run
from traceinsight.report.text import NAME_LIMIT, clean

SLOWER = 0.995
"""A speedup below this is called slower; nearer to 1 it is no change."""

_SMALLEST_SHOWN = 1e-9
"""A residual of exactly nothing is shown as less than the smallest share, not as "within 0%"."""

_NO_REPLAY = "A prediction needs measured steps that a replay can explain."
_DOES_NOT_APPLY = "does not apply"


def render_what_if(answer: WhatIf, format_name: str, options: ReportOptions) -> str:
    """The answer in the format of that name (a key of ``FORMATS``)."""
    if format_name == "json":
        return to_json(answer)
    return FORMATS[format_name].draw(build_what_if(answer), options)


def build_what_if(answer: WhatIf) -> Document:
    """The step with all edits first, then what each of them does."""
    if answer.step_ns is None:
        basis = f"{_NO_REPLAY}{run.doubts(answer)}"
        footer = "how it is predicted: docs/prediction.md"
        return Document(verdict_of(answer), basis, _rests_on(answer), footer)
    share = format_share(answer.replay.residual_share or _SMALLEST_SHOWN)
    what = "simulated" if answer.run.simulated else "measured"
    return Document(
        verdict=verdict_of(answer),
        basis=f"Today: {what}, from the end of one step's work to that of the next, mean over steps. "
        f"Replayed from causes alone, a step is within {share} of the {what} one."
        f"{_lost(answer)}{run.doubts(answer)}",
        sections=((_edits(answer),) if answer.edits else ()) + _rests_on(answer),
        footer="how it is predicted: docs/prediction.md · how far to trust it: docs/accuracy.md",
    )


def _lost(answer: WhatIf) -> str:
    share = answer.replay.lost_share
    if not share:
        return ""
    return f" The profiler lost {format_share(share)} of its kernels; they are replayed as in other steps."


def _rests_on(answer: WhatIf) -> tuple[Section, ...]:
    """What analyze says of the data, where something was lost or left out."""
    graver = any(note.severity != "info" for note in answer.data_quality)
    quality = (data_quality.section(answer),) if graver else ()
    return quality + ((run.section(answer),) if answer.run.other_runs else ())


def verdict_of(answer: WhatIf) -> str:
    """Today's step and the predicted one in a sentence, or why nothing is predicted."""
    if answer.step_ns is None:
        return f"Nothing is predicted: {answer.replay.reason}."
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
