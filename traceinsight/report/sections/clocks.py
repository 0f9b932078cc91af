"""How far the ranks' clocks are apart, and how well that is known."""

from __future__ import annotations

from traceinsight.base.units import format_ns
from traceinsight.diagnosis import Clock, Diagnosis
from traceinsight.report.document import Column, Paragraph, Section, Table
from traceinsight.report.options import ReportOptions
from traceinsight.report.sections.ranks import late_ranks, medians_by_rank, rank_rows, summary_note


def section(diagnosis: Diagnosis, options: ReportOptions) -> Section:
    """Offset and residual per rank; nothing when there are no two clocks to compare."""
    if not diagnosis.clocks or len(diagnosis.run.ranks) < 2:
        return Section("Clocks", (Paragraph("One rank: no other clock to compare with."),), detail=True)
    if all(clock.offset_ns is None for clock in diagnosis.clocks):
        text = "Not measured: no collective ties the ranks' clocks together."
        return Section("Clocks", (Paragraph(text),), detail=True)
    per_rank = medians_by_rank(diagnosis.clocks, _values)
    note = summary_note(per_rank, "offset", all_ranks=options.all_ranks)
    table = Table(
        caption=("How far each rank's clock runs ahead of the reference; residual = its error"),
        columns=(Column("rank"), Column("offset"), Column("residual")),
        rows=rank_rows(
            per_rank,
            (format_ns, format_ns),
            late=late_ranks(diagnosis),
            extreme_by=(0,),
            all_ranks=options.all_ranks,
        ),
        legend=f"Offsets are taken out of every number; no lateness below the residual is claimed.{note}",
    )
    return Section("Clocks", (table,), detail=True)


def _values(clock: Clock) -> tuple[float | None, ...]:
    return (clock.offset_ns, clock.residual_ns)
