"""The few numbers that stand below the verdict."""

from __future__ import annotations

from dataclasses import dataclass

from traceinsight.base.statistics import median
from traceinsight.base.units import format_factor, format_ns, format_share
from traceinsight.diagnosis import Diagnosis, Partition, in_roadmap_order
from traceinsight.report.sections.findings import typical_step_ns


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
    found = [
        Tile("Step", format_ns(typical_step_ns(diagnosis)), over),
        Tile("Computing", format_share(_typical(rows, ("compute_ns",))), f"of the step window, {over}"),
        Tile(
            "Exposed communication",
            format_share(
                _typical(
                    rows, ("exposed_comm_transfer_ns", "exposed_comm_wait_ns", "exposed_comm_unsplit_ns")
                )
            ),
            f"of the step window, {over}",
        ),
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


def _typical(rows: list[Partition], names: tuple[str, ...]) -> float:
    return median([sum(getattr(row, name) for name in names) / row.window_ns for row in rows])
