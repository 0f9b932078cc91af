"""Two diagnoses side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from traceinsight.base.errors import UsageError
from traceinsight.base.statistics import median
from traceinsight.diagnosis import Diagnosis, Generator, Partition
from traceinsight.diagnosis.comparison import Change, Comparison, HeldPrediction, Throughput
from traceinsight.diagnosis.prediction import WhatIf
from traceinsight.engine.comparison.changes import (
    change,
    communication_changes,
    idle_changes,
    part_changes,
)
from traceinsight.engine.comparison.gates import Limit, Metric, judge
from traceinsight.engine.comparison.notes import batches_compare, edit_hints, notes_on
from traceinsight.engine.comparison.predictions import hold_predictions, recorded_predictions
from traceinsight.engine.comparison.presence import finding_changes, straggler_changes
from traceinsight.engine.comparison.samples import Side, sides
from traceinsight.engine.comparison.verdict import verdict_of


def compare(
    before: Diagnosis,
    after: Diagnosis,
    *,
    version: str,
    edits: Sequence[str] = (),
    predicted: WhatIf | None = None,
    limits: Sequence[Limit] = (),
) -> Comparison:
    """What changed between the runs, and whether it is more than the steps' own noise.

    ``predicted`` is the answer of a what-if on BEFORE for ``edits``, which were applied on the way to AFTER;
    without it the prediction is the one in BEFORE's roadmap or findings.

    Raises:
        UsageError: Neither holds a prediction for ``edits``.

    """
    first, second = sides(before, after)
    on_host = not all(one.steps_ns(on_host=False) for one in (first, second)) and all(
        one.steps_ns(on_host=True) for one in (first, second)
    )
    steps = first.steps_ns(on_host=on_host), second.steps_ns(on_host=on_host)
    step_ns = median(steps[0]) if steps[0] else None
    factor = _batch_factor(before, after)
    step_time = change(*steps, step_ns)
    equal_batch = None if factor == 1 else change(steps[0], [one * factor for one in steps[1]], step_ns)
    parts = part_changes(first, second, step_ns)
    main = equal_batch or step_time
    return Comparison(
        generator=Generator(name="traceinsight", version=version),
        verdict=verdict_of(main, parts, equal_batch=equal_batch is not None),
        before=before.run,
        after=after.run,
        before_steps=list(first.steps),
        after_steps=list(second.steps),
        step_time=step_time,
        equal_batch=equal_batch,
        throughput=_throughput(before, after, step_time),
        partition=parts,
        idle_by_cause=idle_changes(first, second, step_ns),
        communication=communication_changes(first, second, step_ns),
        stragglers=straggler_changes(before, after),
        findings=finding_changes(before, after),
        predictions=_predictions(before, edits, predicted, step_time) if edits else [],
        hints=edit_hints(before, after, edits),
        notes=notes_on(before, after, on_host=on_host),
        gates=judge(limits, _gated(first, second, main, factor, step_ns)),
    )


def _predictions(
    before: Diagnosis, edits: Sequence[str], predicted: WhatIf | None, step: Change
) -> list[HeldPrediction]:
    if predicted is not None:
        return hold_predictions(predicted, edits, step.before_ns, step.after_ns)
    recorded = recorded_predictions(before, edits, step.before_ns, step.after_ns)
    if recorded is None:
        raise UsageError(
            "BEFORE is a report without traces to replay; its roadmap does not begin with these edits, and "
            "no finding's gain is that of them alone.",
            where=", ".join(edits),
            what_to_do="Give the traces of BEFORE, or leave out --edit.",
        )
    return recorded


def _batch_factor(before: Diagnosis, after: Diagnosis) -> float:
    """What AFTER's step is multiplied with to be a step of BEFORE's batch; 1 where that cannot be told."""
    one, other = before.run.batch_per_rank, after.run.batch_per_rank
    return one / other if one and other and batches_compare(one, other) else 1.0


_GATED_PARTS: dict[Metric, Callable[[Partition], float]] = {
    "exposed-comm": lambda row: row.exposed_comm_ns,
    "idle": lambda row: row.idle_ns,
}


def _gated(
    before: Side, after: Side, step: Change, factor: float, step_ns: float | None
) -> dict[Metric, Change]:
    metrics: list[tuple[Metric, Change]] = [("regression", step)]
    for name, part in _GATED_PARTS.items():
        scaled = [one * factor for one in after.part_ns(part)]
        metrics.append((name, change(before.part_ns(part), scaled, step_ns)))
    return dict(metrics)


def _throughput(before: Diagnosis, after: Diagnosis, step: Change) -> Throughput | None:
    rates = _examples_per_s(before, step.before_ns), _examples_per_s(after, step.after_ns)
    if rates[0] is None or rates[1] is None:
        return None
    return Throughput(
        before_examples_per_s=rates[0], after_examples_per_s=rates[1], change_share=rates[1] / rates[0] - 1
    )


def _examples_per_s(diagnosis: Diagnosis, step_ns: int | None) -> float | None:
    batch, world = diagnosis.run.batch_per_rank, diagnosis.run.world_size
    return batch * world / (step_ns * 1e-9) if batch and world and step_ns else None
