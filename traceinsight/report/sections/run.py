"""Which run was analysed: ranks, device, steps, and what was left out."""

from __future__ import annotations

from collections import defaultdict

from traceinsight.base.units import format_ranks
from traceinsight.diagnosis import Diagnosis, OtherRun, Run
from traceinsight.diagnosis.prediction import WhatIf
from traceinsight.report.document import Block, Facts, Section
from traceinsight.report.text import NAME_LIMIT, clean

_PARTS_SHOWN = 24


def section(diagnosis: Diagnosis | WhatIf) -> Section:
    """Facts of the run, then the runs that were found beside it."""
    run = diagnosis.run
    rows = [
        ("Ranks", _ranks(run)),
        ("Missing", _missing(run)),
        ("Device", clean(run.device, NAME_LIMIT) if run.device else "not recorded"),
        ("Backend", clean(run.backend, NAME_LIMIT) if run.backend else "not recorded"),
        ("Steps", _steps(run)),
        *_dropped(run),
        (
            "QComms",
            ", ".join(clean(name, NAME_LIMIT) for name in run.quantized_comms)
            or "no quantized communication seen",
        ),
        ("Files", f"{len(run.files):,} read"),
        *(_other_run(other) for other in run.other_runs),
    ]
    if run.simulated:
        rows.insert(0, ("Origin", "simulated, not measured"))
    blocks: list[Block] = [Facts(tuple(rows))]
    return Section("The run", tuple(blocks), detail=True)


def basis(diagnosis: Diagnosis) -> str:
    """How much data the verdict rests on, and where to look before believing it."""
    run = diagnosis.run
    # A rank whose file was read but holds no step's device time adds nothing to the verdict.
    measured = len({row.rank for row in diagnosis.partition}) or len(run.ranks)
    captured = f"{measured:,}" + ("" if run.world_size is None else f" of {run.world_size:,}")
    parts = [
        "simulated data" if run.simulated else "",
        f"{captured} rank{'s' if (run.world_size or measured) != 1 else ''}",
        _counted(len(run.steps), "step", "steps") or "no whole step",
        clean(run.device or "device not recorded", NAME_LIMIT),
    ]
    rests_on = ", ".join(part for part in parts if part)
    return f"Rests on {rests_on}.{doubts(diagnosis, not_judged=len(diagnosis.not_judged))}"


def doubts(diagnosis: Diagnosis | WhatIf, *, not_judged: int = 0) -> str:
    """What stands further down and may change how the first sentence is to be read; empty if nothing does."""
    errors = sum(note.severity == "error" for note in diagnosis.data_quality)
    counted = [
        _counted(errors, "data error", "data errors"),
        _counted(not_judged, "question not judged", "questions not judged"),
        _counted(len(diagnosis.run.other_runs), "other run found", "other runs found"),
    ]
    known = [doubt for doubt in counted if doubt]
    return f" But: {', '.join(known)} (see below)." if known else ""


def _counted(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}" if count else ""


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
