"""The document of a comparison: verdict, where the change is, what was predicted, how far runs compare."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from traceinsight.base.units import (
    format_bytes,
    format_count,
    format_gbps,
    format_ns,
    format_ranks,
    format_share,
)
from traceinsight.diagnosis import CommunicationRow, Run
from traceinsight.diagnosis.comparison import (
    Change,
    CommunicationChange,
    Comparison,
    HeldPrediction,
    PartChange,
)
from traceinsight.report.document import Block, Bullets, Column, Document, Facts, Paragraph, Section, Table
from traceinsight.report.text import NAME_LIMIT, clean

_KINDS_SHOWN = 10
_CHANGE_COLUMNS = ("before", "after", "change", "% step", "interval", "says")
_PRESENCE = {
    "appeared": "new",
    "vanished": "gone",
    "stayed": "in both",
    "not_judged_before": "found after; before could not be judged",
    "not_judged_after": "found before; after could not be judged",
}


def build_comparison(comparison: Comparison) -> Document:
    """The verdict first, then what it rests on."""
    sections = (
        _gates(comparison),
        _step(comparison),
        _predictions(comparison),
        _communication(comparison),
        _found(comparison),
        _notes(comparison),
        _runs(comparison),
    )
    generator = comparison.generator
    return Document(
        verdict=comparison.verdict,
        basis=_basis(comparison),
        sections=tuple(section for section in sections if section is not None),
        footer=f"{generator.name} {generator.version} · every number's formula: docs/metrics.md",
    )


def _basis(comparison: Comparison) -> str:
    counts = [len(comparison.before_steps), len(comparison.after_steps)]
    ranks = [len(comparison.before.ranks), len(comparison.after.ranks)]
    notes = len(comparison.notes)
    but = (
        f" But: {notes} note{'s' if notes > 1 else ''} on how comparable the runs are (below)."
        if notes
        else ""
    )
    return f"Rests on {counts[0]} and {counts[1]} steps, {ranks[0]} and {ranks[1]} ranks captured.{but}"


def _gates(comparison: Comparison) -> Section | None:
    words = {"passed": "passed", "failed": "FAILED", "not_judged": "FAILED, not judged"}
    lines = tuple(f"{gate.metric}: {words[gate.outcome]}: {gate.reason}." for gate in comparison.gates)
    return Section("Gates", (Bullets(lines),)) if lines else None


def change_cells(change: Change) -> tuple[str, ...]:
    """The cells of ``_CHANGE_COLUMNS``."""
    return (
        format_ns(change.before_ns),
        format_ns(change.after_ns),
        _signed(change.change_ns),
        format_share(change.share),
        interval(change),
        says(change),
    )


def interval(change: Change) -> str:
    """Bounds of ``share``: ``-21.4% to -19.2%``."""
    if change.low_share is None or change.high_share is None:
        return "not known"
    return f"{format_share(change.low_share)} to {format_share(change.high_share)}"


def says(change: Change) -> str:
    """What may be concluded from a change, in a word."""
    if not change.judged:
        return "not judged"
    if not change.significant:
        return "no change"
    return "more" if (change.change_ns or 0) > 0 else "less"


def _signed(duration_ns: int | None) -> str:
    return (
        f"+{format_ns(duration_ns)}"
        if duration_ns is not None and duration_ns > 0
        else format_ns(duration_ns)
    )


def _step(comparison: Comparison) -> Section:
    rows = [("step", comparison.step_time)]
    if comparison.equal_batch is not None:
        rows.append(("at BEFORE's batch", comparison.equal_batch))
    parts = [part for part in comparison.partition if _is_there(part)]
    rows += [(part.part, part.change) for part in parts]
    rows += [(f"idle: {part.part}", part.change) for part in comparison.idle_by_cause if _is_there(part)]
    blocks: list[Block] = [
        _change_table(
            "Per step; step: median over ranks, parts: mean over ranks",
            rows,
            "% step: change against the step time before; interval: its bounds, from the noise over steps. "
            "no change: not beyond the noise, or below 1% of the step.",
        )
    ]
    rate = comparison.throughput
    if rate is not None:
        blocks.append(
            Paragraph(
                f"Throughput: {rate.before_examples_per_s:,.0f} examples/s before, "
                f"{rate.after_examples_per_s:,.0f} after "
                f"({'+' if rate.change_share > 0 else ''}{format_share(rate.change_share)})."
            )
        )
    return Section("Step time and its parts", tuple(blocks))


def _is_there(part: PartChange) -> bool:
    return bool(part.change.before_ns or part.change.after_ns)


def _change_table(caption: str, rows: Iterable[tuple[str, Change]], legend: str) -> Table:
    return Table(
        caption=caption,
        columns=(Column("part"), *(Column(header) for header in _CHANGE_COLUMNS)),
        rows=tuple((name, *change_cells(change)) for name, change in rows),
        legend=legend,
    )


def _predictions(comparison: Comparison) -> Section | None:
    blocks: list[Block] = []
    if comparison.predictions:
        blocks.append(
            Table(
                caption="Step time after the edits, each on top of the ones before it",
                columns=tuple(
                    Column(header)
                    for header in ("edit", "predicted", "interval", "measured", "error", "inside")
                ),
                rows=tuple(_prediction(row) for row in comparison.predictions),
                legend="predicted by replaying BEFORE; error = predicted / measured - 1; inside: whether the "
                "measured step lies in the interval.",
            )
        )
        blocks += [
            Paragraph(f"{clean(row.edit, NAME_LIMIT)}: {row.not_predicted}.", "muted")
            for row in comparison.predictions
            if row.not_predicted
        ]
    blocks += [
        Paragraph(
            f"It seems that {hint.edit} was applied ({hint.reason}): add --edit {hint.edit} to hold its "
            "prediction against AFTER.",
            "muted",
        )
        for hint in comparison.hints
    ]
    return Section("Predicted and measured", tuple(blocks)) if blocks else None


def _prediction(row: HeldPrediction) -> tuple[str, ...]:
    edit = clean(row.edit, NAME_LIMIT)
    if row.step_ns is None:
        return (edit, "not predicted", "", "", "", "")
    bounds = f"{format_ns(row.step_ns.low)} to {format_ns(row.step_ns.high)}"
    if row.measured_ns is None:
        return (edit, format_ns(row.step_ns.expected), bounds, "", "", "")
    inside = "yes" if row.inside_interval else "no"
    return (
        edit,
        format_ns(row.step_ns.expected),
        bounds,
        format_ns(row.measured_ns),
        format_share(row.error_share),
        inside,
    )


def _communication(comparison: Comparison) -> Section | None:
    rows = comparison.communication
    if not rows:
        return None
    shown = rows[:_KINDS_SHOWN]
    headers = ("exposed", "change", "says", "transfer", "wait", "count", "bytes", "bus")
    blocks: list[Block] = [
        Table(
            caption="Per step, mean over ranks; before > after",
            columns=(Column("kind", name=True), *(Column(header) for header in headers)),
            rows=tuple(_kind_cells(row) for row in shown),
            legend="exposed = nothing computed meanwhile, over the compared steps; transfer and wait are its "
            "parts, over all steady steps. bus = bus bandwidth. One number: equal in both.",
            wide_key=True,
        )
    ]
    if len(rows) > len(shown):
        blocks.append(Paragraph(f"{len(rows) - len(shown)} more kinds; --format json lists all.", "muted"))
    return Section("Communication by kind", tuple(blocks), detail=True)


def _kind_cells(row: CommunicationChange) -> tuple[str, ...]:
    pair, exposed = (row.before, row.after), (row.exposed.before_ns, row.exposed.after_ns)
    return (
        _kind(pair),
        _both([format_ns(ns) if one else "none" for one, ns in zip(pair, exposed, strict=True)]),
        _signed(row.exposed.change_ns),
        says(row.exposed),
        _both([format_ns(one.exposed_transfer_ns) if one else "none" for one in pair]),
        _both([format_ns(one.exposed_wait_ns) if one else "none" for one in pair]),
        _both([format_count(one.count_per_step) if one else "none" for one in pair]),
        _both([format_bytes(one.bytes_per_step) if one else "none" for one in pair]),
        _both([format_gbps(one.bus_gbps) if one else "none" for one in pair]),
    )


def _kind(pair: tuple[CommunicationRow | None, CommunicationRow | None]) -> str:
    one = pair[0] or pair[1]
    assert one is not None
    dtypes = _both([row.dtype or "" for row in pair if row])
    what = clean(f"{one.op} in {one.phase}{f', {dtypes}' if dtypes else ''}", NAME_LIMIT)
    return f"{clean(one.label, NAME_LIMIT)} ({what})" if one.label else what


def _both(texts: Sequence[str]) -> str:
    return texts[0] if len(set(texts)) == 1 else " > ".join(texts)


def _found(comparison: Comparison) -> Section | None:
    lines = []
    for one in comparison.stragglers:
        group = one.after or one.before
        if group is not None:
            ranks = format_ranks(group.ranks, max_parts=8)
            lines.append(f"{_PRESENCE[one.presence]}: straggler, rank {ranks}")
    for change in comparison.findings:
        finding = change.after or change.before
        if finding is not None and finding.rule != "straggler":
            lines.append(f"{_PRESENCE[change.presence]}: {clean(finding.title)}")
    return Section("Stragglers and findings", (Bullets(tuple(lines)),)) if lines else None


def _notes(comparison: Comparison) -> Section | None:
    lines = tuple(clean(note.message) for note in comparison.notes)
    return Section("How comparable the runs are", (Bullets(lines),)) if lines else None


def _runs(comparison: Comparison) -> Section:
    rows = (
        ("Before", _run(comparison.before, comparison.before_steps)),
        ("After", _run(comparison.after, comparison.after_steps)),
    )
    return Section("The runs", (Facts(rows),), detail=True)


def _run(run: Run, steps: Sequence[int]) -> str:
    world = "world size not recorded" if run.world_size is None else f"world size {run.world_size:,}"
    batch = (
        "batch not recorded" if run.batch_per_rank is None else f"{run.batch_per_rank:,} examples per rank"
    )
    return (
        f"{clean(run.device or 'device not recorded', NAME_LIMIT)}, {world}, {batch}; steps "
        f"{format_ranks(steps, max_parts=8)} compared; {len(run.files):,} files"
    )
