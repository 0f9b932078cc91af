"""How much of the forward pass is communication, per rank."""

from __future__ import annotations

from traceinsight.base.units import format_ns, format_share
from traceinsight.diagnosis import Diagnosis, ForwardShare
from traceinsight.report.document import Block, Column, Paragraph, Section, Table
from traceinsight.report.options import ReportOptions
from traceinsight.report.sections.device_time import steps_text
from traceinsight.report.sections.ranks import late_ranks, medians_by_rank, rank_rows, summary_note
from traceinsight.report.text import NAME_LIMIT, clean

_HEADERS = ("rank", "forward", "all comm", "exposed", "transfer", "wait", "unsplit", "largest")
_EXPOSED = 2


def section(diagnosis: Diagnosis, options: ReportOptions) -> Section:
    """Total and exposed communication launched by forward, as shares of the forward span."""
    title = "Communication share of forward"
    if not diagnosis.forward:
        text = "Not measured: no forward pass was found in the analysed steps."
        return Section(title, (Paragraph(text),), detail=True)
    per_rank = medians_by_rank(diagnosis.forward, _values)
    note = summary_note(per_rank, "exposed communication", all_ranks=options.all_ranks)
    sources = sorted({clean(row.source, NAME_LIMIT) for row in diagnosis.forward})
    blocks: list[Block] = [
        Table(
            caption=(f"% of each rank's forward span ({steps_text(diagnosis)})"),
            columns=tuple(Column(header) for header in _HEADERS),
            rows=rank_rows(
                per_rank,
                (format_ns, *(format_share,) * 6),
                late=late_ranks(diagnosis),
                extreme_by=(_EXPOSED,),
                all_ranks=options.all_ranks,
            ),
            legend=(
                "all comm = communication launched by forward; exposed = nothing computed meanwhile = "
                "transfer + wait + unsplit; largest = the largest single collective. Forward was found by: "
                f"{', '.join(sources)}.{note}"
            ),
        ),
        *_largest(diagnosis),
    ]
    return Section(title, tuple(blocks), detail=True)


def _values(row: ForwardShare) -> tuple[float | None, ...]:
    def share(part_ns: int) -> float | None:
        return part_ns / row.span_ns if row.span_ns else None

    return (
        row.span_ns,
        share(row.comm_ns),
        share(row.exposed_comm_ns),
        share(row.exposed_transfer_ns),
        share(row.exposed_wait_ns),
        share(row.exposed_unsplit_ns),
        _largest_share(row),
    )


def _largest_share(row: ForwardShare) -> float | None:
    """A step without communication has a largest share of zero; one with it may not say which was largest."""
    if row.largest_collective is not None:
        return row.largest_collective.share
    return None if row.comm_ns else 0.0


def _largest(diagnosis: Diagnosis) -> list[Block]:
    """The name does not fit a column, and it is nearly always the same on all ranks."""
    rows = [row for row in diagnosis.forward if row.largest_collective is not None]
    if not rows:
        return []
    top = max(rows, key=lambda row: row.largest_collective.share if row.largest_collective else 0.0)
    if top.largest_collective is None:  # excluded above; said again for the type checker
        return []
    name = clean(top.largest_collective.name, NAME_LIMIT)
    share = format_share(top.largest_collective.share)
    return [
        Paragraph(
            f"Largest anywhere: {name}, {share} of the forward span on rank {top.rank}, step {top.step}.",
            "muted",
        )
    ]
