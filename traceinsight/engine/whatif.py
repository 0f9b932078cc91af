"""What the step time would be with the changes a user names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple

from traceinsight.diagnosis import Generator, Interval, NanosecondRange, OtherRun
from traceinsight.diagnosis.prediction import PredictedEdit, RankStepParts, Replay, WhatIf
from traceinsight.engine.facts import data_notes, data_quality, run_facts
from traceinsight.replay.edits.edit import Edit, NotApplicableError
from traceinsight.replay.edits.registry import parse_edit
from traceinsight.replay.predict import Bench, Prediction
from traceinsight.replay.prepared import Prepared, Unpredictable, prepare
from traceinsight.trace.activity import activities
from traceinsight.trace.trace_set import TraceSet


def what_if(
    trace_set: TraceSet,
    edits: Sequence[str],
    other_runs: Sequence[OtherRun] = (),
    *,
    version: str | None = None,
) -> WhatIf:
    """Apply the edits in order, each on what the ones before have left.

    Raises:
        UsageError: If an edit is unknown or its value is wrong.

    """
    parsed = [parse_edit(text) for text in edits]
    prepared = prepare(trace_set, activities(trace_set))
    run = run_facts(trace_set, other_runs)
    generator = Generator(name="traceinsight", version=version) if version is not None else None
    quality = data_quality(data_notes(trace_set))
    if isinstance(prepared, Unpredictable):
        return WhatIf(
            generator=generator,
            run=run,
            replay=replay_facts(prepared),
            step_ns=None,
            edits=[],
            data_quality=quality,
        )
    bench = Bench(prepared)
    rows, applied = _apply_in_turn(bench, parsed)
    return WhatIf(
        generator=generator,
        run=run,
        replay=replay_facts(prepared),
        step_ns=round(prepared.step_ns),
        edits=rows,
        parts_before=_parts(bench, []),
        parts_after=_parts(bench, applied),
        data_quality=quality,
    )


def _parts(bench: Bench, edits: Sequence[Edit]) -> list[RankStepParts]:
    """By replay, stretched to the predicted step as the step itself is."""
    found, step_ns = bench.parts(edits), bench.predict(edits).expected_ns
    whole = sum(astuple(found[0])[1:]) if found else 0.0
    scale = step_ns / whole if whole else 1.0
    return [
        RankStepParts(
            rank=one.rank,
            compute_ns=round(one.compute_ns * scale),
            transfer_ns=round(one.transfer_ns * scale),
            wait_ns=round(one.wait_ns * scale),
            copy_ns=round(one.copy_ns * scale),
            idle_ns=round(one.idle_ns * scale),
            replica_sync_ns=round(one.replica_sync_ns * scale),
        )
        for one in found
    ]


def _apply_in_turn(bench: Bench, edits: Sequence[Edit]) -> tuple[list[PredictedEdit], list[Edit]]:
    """What each edit does, and those that apply."""
    applied: list[Edit] = []
    before = bench.predict([])
    rows = []
    for edit in edits:
        try:
            after = bench.predict([*applied, edit])
        except NotApplicableError as reason:
            rows.append(_not_applicable(edit, str(reason)))
            continue
        applied.append(edit)
        rows.append(_predicted(edit, before, after))
        before = after
    return rows, applied


def _predicted(edit: Edit, before: Prediction, after: Prediction) -> PredictedEdit:
    said = after.explanations[-1]
    return PredictedEdit(
        edit=edit.text,
        step_ns=step_range(after),
        speedup=speedup(before.expected_ns, after),
        cumulative_speedup=speedup(after.before_ns, after),
        per_example_factor=after.examples_factor / before.examples_factor,
        not_applicable=None,
        detail=said.detail,
    )


def _not_applicable(edit: Edit, reason: str) -> PredictedEdit:
    return PredictedEdit(
        edit=edit.text,
        step_ns=None,
        speedup=None,
        cumulative_speedup=None,
        per_example_factor=1.0,
        not_applicable=reason,
    )


def step_range(after: Prediction) -> NanosecondRange:
    """Step time after the edits, with its interval."""
    return NanosecondRange(
        low=round(after.low_ns), expected=round(after.expected_ns), high=round(after.high_ns)
    )


def speedup(now_ns: float, after: Prediction) -> Interval:
    """Step time now over step time then: the slow end of the interval is the low speedup."""
    least = 1.0  # ns: a step of no length would make the speedup infinite
    return Interval(
        low=now_ns / max(after.high_ns, least),
        expected=now_ns / max(after.expected_ns, least),
        high=now_ns / max(after.low_ns, least),
    )


def replay_facts(found: Prepared | Unpredictable) -> Replay:
    """The replay's part of a document."""
    return Replay(
        residual_share=found.residual.share if found.residual else None,
        worst_step=found.residual.worst_share if found.residual else None,
        predicted=isinstance(found, Prepared),
        reason=None if isinstance(found, Prepared) else found.reason,
        step_ns=round(found.step_ns) if isinstance(found, Prepared) else None,
        lost_share=found.lost.guessed_share if isinstance(found, Prepared) else None,
    )
