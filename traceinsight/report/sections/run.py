"""Which run was analysed: ranks, device, steps, and what was left out."""

from __future__ import annotations

from collections import defaultdict

from traceinsight.base.units import NOT_MEASURED, format_ranks
from traceinsight.diagnosis import Diagnosis, OtherRun, Run
from traceinsight.report.document import Block, Facts, Section
from traceinsight.report.text import NAME_LIMIT, clean

_PARTS_SHOWN = 24


def section(diagnosis: Diagnosis) -> Section:
    """Facts of the run, then the runs that were found beside it."""
    run = diagnosis.run
    rows = [
        ("Ranks", _ranks(run)),
        ("Missing", _missing(run)),
        ("Device", clean(run.device, NAME_LIMIT) if run.device else NOT_MEASURED),
        ("Backend", clean(run.backend, NAME_LIMIT) if run.backend else NOT_MEASURED),
        ("Steps", _steps(run)),
        *_dropped(run),
        ("Quantized", ", ".join(clean(name, NAME_LIMIT) for name in run.quantized_comms) or "no codec seen"),
        ("Files", f"{len(run.files):,} read"),
        *(_other_run(other) for other in run.other_runs),
    ]
    if run.simulated:
        rows.insert(0, ("Origin", "simulated, not measured"))
    blocks: list[Block] = [Facts(tuple(rows))]
    return Section("The run", tuple(blocks), detail=True)


def _ranks(run: Run) -> str:
    world = "world size not recorded" if run.world_size is None else f"world size {run.world_size:,}"
    return f"{format_ranks(run.ranks, max_parts=_PARTS_SHOWN)} ({len(run.ranks):,} read; {world})"


def _missing(run: Run) -> str:
    if run.missing_ranks:
        missing = format_ranks(run.missing_ranks, max_parts=_PARTS_SHOWN)
        return f"{missing} ({len(run.missing_ranks):,} not captured)"
    return "cannot be told without the world size" if run.world_size is None else "none"


def _steps(run: Run) -> str:
    steps = format_ranks(run.steps, max_parts=_PARTS_SHOWN)
    return f"{steps} ({len(run.steps):,} analysed; found by: {clean(run.step_source, NAME_LIMIT)})"


def _dropped(run: Run) -> list[tuple[str, str]]:
    by_reason: dict[str, list[int]] = defaultdict(list)
    for drop in run.dropped_steps:
        by_reason[drop.reason].append(drop.step)
    return [
        (
            "Left out",
            f"step{'s' if len(steps) > 1 else ''} {format_ranks(steps, max_parts=_PARTS_SHOWN)}: {reason}",
        )
        for reason, steps in by_reason.items()
    ]


def _other_run(other: OtherRun) -> tuple[str, str]:
    ranks = format_ranks([rank for rank in other.ranks if rank is not None], max_parts=_PARTS_SHOWN)
    files = len(other.files)
    return (
        "Other run",
        f"--run {other.index} analyses it: {files:,} file{'s' if files != 1 else ''}, ranks {ranks}, started "
        f"{clean(other.start, NAME_LIMIT)}",
    )
