"""The few numbers that stand below the verdict."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traceinsight.base.statistics import median
from traceinsight.base.units import format_factor, format_ns, format_share
from traceinsight.diagnosis import Diagnosis, in_roadmap_order, typical_step_ns


@dataclass(frozen=True, slots=True)
class Tile:
    """One number with its unit, and below it what it is a number of."""

    label: str
    value: str
    note: str


def tiles(diagnosis: Diagnosis) -> list[Tile]:
    """Step time, how much of it computes, how much waits for communication, what remedies bring."""
    rows = [row for row in diagnosis.partition if row.window_ns]
    if not rows:
        return []
    over = "median over ranks and steps"
    of_window = f"of the step window, {over}"
    computing = [row.compute_ns / row.window_ns for row in rows]
    exposed = [row.exposed_comm_ns / row.window_ns for row in rows]
    return [
        Tile("Step", format_ns(typical_step_ns(rows)), over),
        Tile("Computing", format_share(median(computing)), of_window),
        Tile("Exposed communication", format_share(median(exposed)), of_window),
        *_remedies(diagnosis),
    ]


def _remedies(diagnosis: Diagnosis) -> Iterator[Tile]:
    """The first one, and all that are predicted together."""
    ordered = in_roadmap_order(diagnosis.findings, diagnosis.roadmap)
    for finding, gain in [(one, one.gain) for one in ordered if one.gain is not None][:1]:
        kind = "at best, if its cause vanished" if gain.kind == "ceiling" else "predicted by replay"
        yield Tile("First remedy", format_factor(gain.speedup.expected), f"as fast {kind}: {finding.rule}")
    predicted = [one.cumulative_speedup for one in diagnosis.roadmap if one.cumulative_speedup is not None]
    if len(predicted) > 1:
        changes = f"as fast with all {len(predicted)} changes, predicted by replay"
        yield Tile("Whole roadmap", format_factor(predicted[-1].expected), changes)
