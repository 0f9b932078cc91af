"""Points, losses and the verdict from several measured runs. Definitions: docs/metrics.md, "Scaling"."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from traceinsight.base.errors import UnreadableInputError, UsageError
from traceinsight.base.units import format_factor, format_ns, format_share
from traceinsight.diagnosis import Generator
from traceinsight.diagnosis.scaling import PARTS, LeftOutRun, Scaling, ScalingPoint, StepParts
from traceinsight.engine.scaling.comparability import beyond_ideal, comparability
from traceinsight.engine.scaling.forecast import forecast
from traceinsight.engine.scaling.measured import MeasuredRun, apportion

PART_WORDS = {
    "compute": "longer compute",
    "transfer": "transfer",
    "wait": "waiting for late peers",
    "replica_sync": "replica sync",
    "unsplit": "communication (transfer or wait)",
    "copy": "copies",
    "idle": "idle time",
}

MOST_SHARE = 0.5
"""A part that makes up at least this share of the loss is called most of it."""


def scale(runs: Sequence[MeasuredRun], *, version: str) -> Scaling:
    """Compare runs of one job at several sizes. ``version`` names the program in the document.

    Raises:
        UsageError: Fewer than two runs, or two of one size.
        UnreadableInputError: Fewer than two of the runs can be compared.

    """
    require_several(len(runs))
    usable, left_out = _usable(runs)
    if len(usable) < 2:
        reasons = "; ".join(f"{one.run}: {one.reason}" for one in left_out)
        raise UnreadableInputError(f"fewer than two runs can be compared. {reasons}")
    _refuse_equal_sizes(usable)
    points = _points(usable)
    notes = [note for run in usable for note in run.notes] + comparability(usable) + beyond_ideal(points)
    ahead = forecast(points)
    return Scaling(
        generator=Generator(name="traceinsight", version=version),
        verdict=_verdict(points[0], points[-1]),
        basis="steps" if any(point.batch_per_rank is None for point in points) else "examples",
        points=points,
        forecast=list(ahead.points),
        model=ahead.model,
        no_forecast=ahead.reason,
        left_out=left_out,
        notes=notes,
    )


def require_several(count: int) -> None:
    """Refuse a single run before minutes are spent on it. Raises UsageError."""
    if count < 2:
        raise UsageError(
            f"scaling compares runs of one job at several world sizes, and {count} was given.",
            what_to_do="Name a folder per run: traceinsight scaling runs/8gpu runs/16gpu runs/32gpu",
        )


def _usable(runs: Sequence[MeasuredRun]) -> tuple[list[MeasuredRun], list[LeftOutRun]]:
    """The runs that can have a point, smallest first, and why the others cannot."""
    batches = {run.batch_per_rank for run in runs if run.batch_per_rank is not None}
    usable, left_out = [], []
    for run in runs:
        reason = _unusable(run, batches_differ=len(batches) > 1)
        if reason is None:
            usable.append(run)
        else:
            left_out.append(LeftOutRun(run=run.name, reason=reason))
    return sorted(usable, key=lambda run: run.world_size or 0), left_out


def _unusable(run: MeasuredRun, *, batches_differ: bool) -> str | None:
    if run.world_size is None:
        return 'its world size is not known; put a run.json with {"world_size": N} beside its traces'
    if run.step_ns is None:
        return "its steps are not marked or have no length; call profiler.step() after each step"
    if batches_differ and run.batch_per_rank is None:
        return (
            "its batch is not known while those of the others differ; put a run.json with "
            '{"batch_per_rank": N} beside its traces'
        )
    return None


def _refuse_equal_sizes(runs: Sequence[MeasuredRun]) -> None:
    by_size: dict[int | None, list[str]] = defaultdict(list)
    for run in runs:
        by_size[run.world_size].append(run.name)
    for size, names in by_size.items():
        if len(names) > 1:
            raise UsageError(
                f"{len(names)} runs have {size:,} ranks: {', '.join(names)}.",
                what_to_do="Give one run per size; to hold two of one size against each other: "
                "traceinsight compare BEFORE AFTER",
            )


def _points(runs: Sequence[MeasuredRun]) -> list[ScalingPoint]:
    return [_point(run, runs[0]) for run in runs]


def _point(run: MeasuredRun, base: MeasuredRun) -> ScalingPoint:
    assert run.world_size is not None
    assert base.world_size is not None
    assert run.step_ns is not None
    assert base.step_ns is not None
    batch, base_batch = run.batch_per_rank or 1, base.batch_per_rank or 1
    if run.batch_per_rank is None or base.batch_per_rank is None:
        batch = base_batch  # not known for both: taken as equal
    ideal_step_ns = max(round(base.step_ns * batch / base_batch), 1)
    efficiency = base.step_ns * batch / (base_batch * run.step_ns)
    ideal = run.world_size / base.world_size
    per_step = None if run.batch_per_rank is None else run.batch_per_rank * run.world_size
    return ScalingPoint(
        run=run.name,
        world_size=run.world_size,
        nodes=run.nodes,
        ranks_read=run.ranks_read,
        steps=run.steps,
        device=run.device,
        simulated=run.simulated,
        batch_per_rank=run.batch_per_rank,
        step_ns=run.step_ns,
        ideal_step_ns=ideal_step_ns,
        examples_per_s=None if per_step is None else per_step / run.step_ns * 1e9,
        throughput_ratio=efficiency * ideal,
        ideal=ideal,
        efficiency=efficiency,
        lost_ns=run.step_ns - ideal_step_ns,
        parts=run.parts,
        lost=_lost(run.parts, base.parts, ideal_step_ns),
    )


def _lost(parts: StepParts | None, base: StepParts | None, ideal_step_ns: int) -> StepParts | None:
    """Each part minus what it would be in an ideal step: the base's step, cut like the base's."""
    if parts is None or base is None:
        return None
    expected = apportion([base.part_ns(part) for part in PARTS], ideal_step_ns)
    return StepParts(
        **{f"{part}_ns": parts.part_ns(part) - ns for part, ns in zip(PARTS, expected, strict=True)}
    )


def _verdict(base: ScalingPoint, last: ScalingPoint) -> str:
    ratio, ideal = format_factor(last.throughput_ratio), format_factor(last.ideal)
    sizes = f"{base.world_size:,} to {last.world_size:,} ranks"
    if last.throughput_ratio < 1:
        said = f"From {sizes} the job gets slower: {ratio} the throughput, where ideal is {ideal}"
    else:
        said = f"From {sizes} throughput grows {ratio}, where ideal is {ideal}"
    said += f" (efficiency {format_share(last.efficiency)})"
    if last.lost_ns <= 0:
        return f"{said}; no step time is lost."
    lost = f"{said}: each step loses {format_ns(last.lost_ns)} of {format_ns(last.step_ns)}"
    if last.lost is None:
        return f"{lost}; to what was not recorded."
    part = max(PARTS, key=last.lost.part_ns)
    part_ns = last.lost.part_ns(part)
    how_much = "most of it" if part_ns >= MOST_SHARE * last.lost_ns else "the largest part of it"
    return f"{lost}, {how_much} to {PART_WORDS[part]} ({format_ns(part_ns)})."
