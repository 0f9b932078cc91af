"""Whether runs differ in more than their size, which the numbers would then hold as well."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traceinsight.diagnosis.scaling import ScalingNote, ScalingPoint
from traceinsight.engine.scaling.forecast import BEYOND_IDEAL_EFFICIENCY
from traceinsight.engine.scaling.measured import MeasuredRun


def comparability(runs: Sequence[MeasuredRun]) -> list[ScalingNote]:
    """Notes on device, origin, batch, nodes and settings, over all runs."""
    names = [run.name for run in runs]
    notes = [
        ScalingNote(severity="warning", code=code, message=message, runs=names)
        for code, message in _differences(runs)
    ]
    assumed = [run.name for run in runs if run.batch_per_rank is None]
    if assumed:
        message = (
            "the batch is not known (run.json: batch_per_rank). Every run is taken to have the same batch "
            "per rank, and throughput is steps/s times world size."
        )
        notes.append(ScalingNote(severity="info", code="batch-assumed", message=message, runs=assumed))
    return notes


def beyond_ideal(points: Sequence[ScalingPoint]) -> list[ScalingNote]:
    """Runs that do much better than ideal, which size alone hardly explains."""
    named = [point.run for point in points if point.efficiency > BEYOND_IDEAL_EFFICIENCY]
    if not named:
        return []
    message = (
        "throughput grows faster than the ranks. Is it the same job? Else the smallest run is held back by "
        "something the larger ones do not have, such as memory that is nearly full."
    )
    return [ScalingNote(severity="warning", code="beyond-ideal", message=message, runs=named)]


def _differences(runs: Sequence[MeasuredRun]) -> Iterator[tuple[str, str]]:
    devices = sorted({run.device or "not recorded" for run in runs})
    if len(devices) > 1:
        yield "device-differs", f"the runs used different devices: {', '.join(devices)}."
    if len({run.simulated for run in runs}) > 1:
        yield "origin-differs", "some runs are simulated and some are measured."
    if len({run.batch_per_rank for run in runs} - {None}) > 1:
        yield (
            "batch-differs",
            "the batch per rank differs. Ideal is the smallest run's time per example; part of what is "
            "gained or lost comes from the batch, not from the size.",
        )
    per_node = {run.world_size / run.nodes for run in runs if run.world_size and run.nodes}
    if len(per_node) > 1:
        yield "ranks-per-node-differ", "ranks per node differ, so the share of traffic inside a node does."
    differing = _differing_settings(runs)
    if differing:
        yield (
            "settings-differ",
            f"the runs differ in more than size ({', '.join(differing)}): the numbers hold both effects.",
        )


def _differing_settings(runs: Sequence[MeasuredRun]) -> list[str]:
    names = sorted({name for run in runs for name in run.settings})
    return [
        name for name in names if not _equal([run.settings[name] for run in runs if name in run.settings])
    ]


def _equal(values: Sequence[object]) -> bool:
    return all(value == values[0] for value in values)
