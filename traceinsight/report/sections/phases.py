"""The step by phase: which part of it holds the work and the waiting."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from traceinsight.base.statistics import median
from traceinsight.base.units import NOT_MEASURED, format_ns
from traceinsight.diagnosis import Diagnosis, PhaseRow
from traceinsight.report.document import Column, Section, Table

_HEADERS = ("phase", "host", "compute", "comm", "exposed", "copy")


def section(diagnosis: Diagnosis) -> Section | None:
    """Phases in the order they come in; None when none was recognised ("other" alone says nothing)."""
    if {row.phase for row in diagnosis.phases} <= {"other"}:
        return None
    by_phase: dict[str, list[PhaseRow]] = defaultdict(list)
    for row in diagnosis.phases:
        by_phase[row.phase].append(row)
    cells = _Cells(len({(row.rank, row.step) for row in diagnosis.phases}), _compute_known(diagnosis))
    table = Table(
        caption="Time per step, median over ranks and steps",
        columns=tuple(Column(header) for header in _HEADERS),
        rows=tuple((phase.replace("_", " "), *cells.of(rows)) for phase, rows in by_phase.items()),
        legend=(
            "host = the main thread; the rest is device work launched by the phase"
            + ("; other = by none, or before the recording" if "other" in by_phase else "")
            + ". exposed = communication with nothing computing. Phases overlap on the device, so columns "
            "need not add up to the step."
        ),
    )
    return Section("The step by phase", (table,), detail=True)


def _compute_known(diagnosis: Diagnosis) -> bool:
    """Whether compute was told apart by phase; on CPU the partition may know of compute that no phase has."""
    by_phase = any(row.compute_ns for row in diagnosis.phases)
    return by_phase or not any(row.compute_ns for row in diagnosis.partition)


@dataclass(frozen=True, slots=True)
class _Cells:
    """Medians over all ``samples`` (rank, step); a phase without a row took no time there."""

    samples: int
    compute_known: bool

    def of(self, rows: list[PhaseRow]) -> tuple[str, ...]:
        return (
            self._typical([row.host_ns for row in rows]),
            self._typical([row.compute_ns for row in rows]) if self.compute_known else NOT_MEASURED,
            self._typical([row.comm_ns for row in rows]),
            self._typical([row.exposed_comm_ns for row in rows]),
            self._typical([row.copy_ns for row in rows]),
        )

    def _typical(self, values: list[int]) -> str:
        return format_ns(round(median(values + [0] * (self.samples - len(values)))))
