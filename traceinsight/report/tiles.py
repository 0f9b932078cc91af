"""The few numbers that stand below the verdict."""

from __future__ import annotations

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
    """Step time, how much of it computes, how much waits for communication, what the first remedy brings."""
    rows = [row for row in diagnosis.partition if row.window_ns]
    if not rows:
        return []
    over = "median over ranks and steps"
    of_window = f"of the step window, {over}"
    computing = [row.compute_ns / row.window_ns for row in rows]
    exposed = [row.exposed_comm_ns / row.window_ns for row in rows]
    found = [
        Tile("Step", format_ns(typical_step_ns(rows)), over),
        Tile("Computing", format_share(median(computing)), of_window),
        Tile("Exposed communication", format_share(median(exposed)), of_window),
    ]
    first = next(
        (finding for finding in in_roadmap_order(diagnosis.findings, diagnosis.roadmap) if finding.gain), None
    )
    if first is not None and first.gain is not None:
        kind = "at best, if its cause vanished" if first.gain.kind == "ceiling" else "predicted by replay"
        found.append(
            Tile("First remedy", format_factor(first.gain.speedup.expected), f"as fast {kind}: {first.rule}")
        )
    return found
