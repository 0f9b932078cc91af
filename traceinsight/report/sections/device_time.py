"""Where the time of a step went on every rank, and why devices were idle."""

from __future__ import annotations

from traceinsight.base.units import format_ns, format_share
from traceinsight.diagnosis import CAUSES, Diagnosis, Partition, typical_step_ns
from traceinsight.report.document import Block, Column, Paragraph, Section, Table
from traceinsight.report.options import ReportOptions
from traceinsight.report.sections.ranks import late_ranks, medians_by_rank, rank_rows, summary_note

_CAUSE_HEADERS = {
    "input": "input",
    "host_sync": "host sync",
    "host": "host work",
    "allocator": "allocator",
    "launch_latency": "launch",
    "dependency": "dependency",
    "unattributed": "unknown",
}
_CAUSE_MEANINGS = {
    "input": "the next batch is fetched",
    "host sync": "the host waits for the device",
    "host work": "operators and launches of the CPU side",
    "allocator": "memory is allocated or freed",
    "launch": "between launch and start",
    "dependency": "waits for other streams or threads",
    "unknown": "the trace does not say",
}
_COMPUTE, _WAIT = 1, 3  # indices among the values of a rank


def section(diagnosis: Diagnosis, options: ReportOptions) -> Section:
    """The six parts of the step window per rank, then idle time by cause."""
    title = f"Where the {device_word(diagnosis)} time went"
    if not diagnosis.partition:
        text = "Not measured: no device activity inside a step was recorded."
        return Section(title, (Paragraph(text),))
    return Section(title, (_step(diagnosis), _parts(diagnosis, options), *_idle(diagnosis, options)))


def device_word(diagnosis: Diagnosis) -> str:
    """What computes: ``GPU``, ``CPU``, or ``device`` when the trace does not say."""
    if diagnosis.run.device is None:
        return "device"
    return "CPU" if diagnosis.run.device == "CPU" else "GPU"


def steps_text(diagnosis: Diagnosis) -> str:
    """``median over 5 steps`` or ``1 step``: what a number of one rank is taken over."""
    steps = len({row.step for row in diagnosis.partition}) or len(diagnosis.run.steps)
    return "1 step" if steps == 1 else f"median over {steps} steps"


def _step(diagnosis: Diagnosis) -> Paragraph:
    windows = [row.window_ns for row in diagnosis.partition]
    ranks = len({row.rank for row in diagnosis.partition})
    if len(windows) == 1:
        return Paragraph(f"The step takes {format_ns(windows[0])}.")
    over = f"{steps_text(diagnosis)}{f' and {ranks} ranks' if ranks > 1 else ''}"
    return Paragraph(
        f"A step takes {format_ns(typical_step_ns(diagnosis.partition))} ({over}; "
        f"{format_ns(min(windows))} to {format_ns(max(windows))})."
    )


def _parts(diagnosis: Diagnosis, options: ReportOptions) -> Table:
    per_rank = medians_by_rank(diagnosis.partition, _values)
    note = summary_note(per_rank, "compute and wait", all_ranks=options.all_ranks)
    return Table(
        caption=(f"% of each rank's step window ({steps_text(diagnosis)})"),
        columns=tuple(
            Column(header)
            for header in ("rank", "step", "compute", "transfer", "wait", "unsplit", "copy", "idle")
        ),
        rows=rank_rows(
            per_rank,
            (format_ns, *(format_share,) * 6),
            late=late_ranks(diagnosis),
            extreme_by=(_COMPUTE, _WAIT),
            all_ranks=options.all_ranks,
        ),
        legend=(
            "transfer, wait, unsplit: communication with nothing computing. wait = a peer came late; "
            "unsplit = peers not captured or not matched, so transfer and wait cannot be told "
            f"apart.{note}"
        ),
    )


def _values(row: Partition) -> tuple[float | None, ...]:
    return (
        row.window_ns,
        _share(row, row.compute_ns),
        _share(row, row.exposed_comm_transfer_ns),
        _share(row, row.exposed_comm_wait_ns),
        _share(row, row.exposed_comm_unsplit_ns),
        _share(row, row.exposed_copy_ns),
        _share(row, row.idle_ns),
    )


def _share(row: Partition, part_ns: int) -> float | None:
    return part_ns / row.window_ns if row.window_ns else None


def _idle(diagnosis: Diagnosis, options: ReportOptions) -> list[Block]:
    """One column per cause that occurs; a cause that occurs nowhere is named in the caption instead."""
    found = {cause for row in diagnosis.partition for cause, ns in row.idle_by_cause_ns.items() if ns}
    causes = [cause for cause in CAUSES if cause in found]
    if not causes:
        return [Paragraph("No idle time in these steps.")]
    absent = [_CAUSE_HEADERS[cause] for cause in CAUSES if cause not in found]

    def values(row: Partition) -> tuple[float | None, ...]:
        return (
            _share(row, row.idle_ns),
            *(_share(row, row.idle_by_cause_ns.get(cause, 0)) for cause in causes),
        )

    per_rank = medians_by_rank(diagnosis.partition, values)
    meanings = "; ".join(f"{h} = {_CAUSE_MEANINGS[h]}" for h in map(_CAUSE_HEADERS.__getitem__, causes))
    without = f" No idle time by: {', '.join(absent)}." if absent else ""
    return [
        Table(
            caption=f"Idle time by cause, % of each rank's step window ({steps_text(diagnosis)})",
            columns=(Column("rank"), Column("idle"), *(Column(_CAUSE_HEADERS[cause]) for cause in causes)),
            rows=rank_rows(
                per_rank,
                (format_share,) * (1 + len(causes)),
                late=late_ranks(diagnosis),
                extreme_by=(0,),
                all_ranks=options.all_ranks,
            ),
            legend=f"{meanings}.{without}",
        )
    ]
