"""Communication by kind: what it costs, how it splits, how fast it moves."""

from __future__ import annotations

from traceinsight.base.units import format_bytes, format_count, format_gbps, format_ns, format_share
from traceinsight.diagnosis import CommunicationRow, Diagnosis
from traceinsight.report.document import Block, Column, Paragraph, Section, Table
from traceinsight.report.sections.device_time import steps_text
from traceinsight.report.text import NAME_LIMIT, clean

_KINDS_SHOWN = 12


def section(diagnosis: Diagnosis) -> Section:
    """One row per operation and label, largest exposed time first."""
    title = "Communication by kind"
    rows = sorted(diagnosis.communication, key=lambda row: row.exposed_ns, reverse=True)
    if not rows:
        return Section(title, (Paragraph("None was recorded in the analysed steps."),), detail=True)
    blocks: list[Block] = [_table(diagnosis, rows[:_KINDS_SHOWN])]
    rest = rows[_KINDS_SHOWN:]
    if rest:
        exposed = max(row.exposed_ns for row in rest)
        blocks.append(
            Paragraph(
                f"{len(rest)} more kinds, none exposed for more than {format_ns(exposed)} per step; "
                "--format json lists all.",
                "muted",
            )
        )
    blocks.append(Paragraph(_matching(diagnosis), "muted"))
    return Section(title, tuple(blocks), detail=True)


def _table(diagnosis: Diagnosis, rows: list[CommunicationRow]) -> Table:
    headers = ("busy", "exposed", "% step", "transfer", "wait", "unsplit", "bytes", "bus")
    return Table(
        caption=(f"Per step, mean over ranks ({steps_text(diagnosis)}); % step = % of the step window"),
        columns=(Column("kind", name=True), *(Column(header) for header in headers)),
        rows=tuple(_cells(row) for row in rows),
        legend=(
            "exposed = nothing computed meanwhile = transfer + wait + unsplit; % step = exposed as % of the "
            "mean step window. bytes = largest payload a rank sends; bus = bus bandwidth as nccl-tests "
            "define it; n/a = not recorded."
        ),
        wide_key=True,
    )


def _cells(row: CommunicationRow) -> tuple[str, ...]:
    return (
        _kind(row),
        format_ns(row.busy_ns),
        format_ns(row.exposed_ns),
        format_share(row.exposed_share),
        format_ns(row.exposed_transfer_ns),
        format_ns(row.exposed_wait_ns),
        format_ns(row.exposed_unsplit_ns),
        format_bytes(row.bytes_per_step),
        format_gbps(row.bus_gbps),
    )


def _kind(row: CommunicationRow) -> str:
    dtype = f", {row.dtype}" if row.dtype else ""
    what = clean(f"{row.op} in {row.phase}{dtype}, {format_count(row.count_per_step)}/step", NAME_LIMIT)
    return f"{clean(row.label, NAME_LIMIT)} ({what})" if row.label else what


def _matching(diagnosis: Diagnosis) -> str:
    total = len(diagnosis.collectives)
    if not total:
        return "No collective could be matched across ranks."
    whole = sum(not one.unmatched_ranks for one in diagnosis.collectives)
    return f"{whole:,} of {total:,} collectives were found on every rank that takes part."
