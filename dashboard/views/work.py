"""Kernels and phases: where the work is."""

from __future__ import annotations

from typing import Any

from traceinsight.diagnosis import Diagnosis

from ..charts.work import kernel_families, phases
from ..context import Context
from ..text import name
from .parts import chart, number, table


def draw(context: Context) -> None:
    """Families with their largest kernels, then the step by phase."""
    diagnosis, colors = context.diagnosis, context.colors
    chart(
        "Device time by kernel family",
        kernel_families(diagnosis, colors),
        "Not measured: no device kernel was recorded.",
        note="Mean over ranks. Kernels on different streams overlap, so the sum can be longer than the step.",
        key="families",
    )
    if diagnosis.kernels:
        table(
            family_rows(diagnosis),
            busy=number("busy", "ms per step"),
            share=number("share", "% of the sum", digits=1, meaning="of the device time of all families"),
            count=number("kernels per step", "", digits=1),
        )
    chart(
        "The step by phase",
        phases(diagnosis, colors),
        "Not measured: no phase of the step was recognised.",
        note="Host time of the main thread beside the device work that the phase launched; they overlap.",
        key="phases",
    )


def family_rows(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """One row per family, the largest first."""
    return [
        {
            "family": name(row.family),
            "busy": row.busy_ns / 1e6,
            "share": 100 * row.share,
            "count": row.count_per_step,
            "largest kernels": ", ".join(name(kernel) for kernel in row.top_kernels[:3]),
        }
        for row in sorted(diagnosis.kernels, key=lambda row: row.busy_ns, reverse=True)
    ]
