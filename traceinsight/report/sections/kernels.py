"""Device time by kernel family."""

from __future__ import annotations

from traceinsight.base.units import format_count, format_ns, format_share
from traceinsight.diagnosis import Diagnosis
from traceinsight.report.document import Column, Paragraph, Section, Table
from traceinsight.report.text import kernel_name

_NAME_LIMIT = 60


def section(diagnosis: Diagnosis) -> Section:
    """Families by device time, with the kernel that takes most of it."""
    title = "Kernel families"
    if not diagnosis.kernels:
        return Section(title, (Paragraph("Not measured: no device kernel was recorded."),), detail=True)
    rows = sorted(diagnosis.kernels, key=lambda row: row.busy_ns, reverse=True)
    table = Table(
        caption=(
            "Device time per step, mean over ranks; % sum = share of the sum of all families"
        ),
        columns=(
            Column("family"), Column("busy"), Column("% sum"), Column("n/step"),
            Column("largest kernel", name=True),
        ),
        rows=tuple(
            (
                row.family,
                format_ns(row.busy_ns),
                format_share(row.share),
                format_count(row.count_per_step),
                kernel_name(row.top_kernels[0], _NAME_LIMIT) if row.top_kernels else "",
            )
            for row in rows
        ),
        legend="Kernels on different streams overlap, so the sum can be longer than the step.",
    )  # fmt: skip
    return Section(title, (table,), detail=True)
