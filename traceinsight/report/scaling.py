"""The answer of ``traceinsight scaling`` as a document, and in any format."""

from __future__ import annotations

from traceinsight.base.units import NOT_MEASURED, format_count, format_factor, format_ns, format_share
from traceinsight.diagnosis.scaling import (
    PARTS,
    ForecastModel,
    ForecastPoint,
    Scaling,
    ScalingPoint,
)
from traceinsight.report.document import (
    Bar,
    Bars,
    Block,
    Bullets,
    Column,
    Document,
    Facts,
    Paragraph,
    Section,
    Table,
)
from traceinsight.report.formats import FORMATS
from traceinsight.report.json_document import to_json
from traceinsight.report.options import ReportOptions
from traceinsight.report.text import file_name

_PART_HEADERS = {"replica_sync": "sync"}
_SHAPES = {
    "saturating": "it approaches a limit, like the share of an exchange that leaves the node",
    "logarithmic": "it grows by the same time with every doubling",
    "linear": "it grows with the number of ranks",
}


def render_scaling(result: Scaling, format_name: str, options: ReportOptions) -> str:
    """The comparison in the format of that name (a key of ``FORMATS``)."""
    if format_name == "json":
        return to_json(result)
    return FORMATS[format_name].draw(build_scaling(result), options)


def build_scaling(result: Scaling) -> Document:
    """Verdict, throughput against ideal, where the lost time goes, larger sizes, and what it rests on."""
    sections = (_throughput(result), _lost(result), _ahead(result), _notes(result), _runs(result))
    base, last = result.points[0], result.points[-1]
    origin = "simulated runs" if all(point.simulated for point in result.points) else "runs"
    generator = result.generator
    return Document(
        verdict=result.verdict,
        basis=f"Rests on {len(result.points)} {origin} of {base.world_size:,} to {last.world_size:,} ranks."
        + _but(result),
        sections=tuple(section for section in sections if section is not None),
        footer=f"{generator.name} {generator.version} · every number's formula: docs/metrics.md",
    )


def _but(result: Scaling) -> str:
    """A pointer to what stands far below and may change how the first sentence is to be read."""
    graver = sum(note.severity == "warning" for note in result.notes) + len(result.left_out)
    if not graver:
        return ""
    return f" But: {graver} warning{'s' if graver > 1 else ''} about these runs (below)."


def _throughput(result: Scaling) -> Section:
    most = max(max(one.throughput_ratio, one.ideal) for one in result.points)
    chart = Bars(
        caption="Throughput by ranks: relative to the smallest run, and as share of ideal (efficiency)",
        rows=tuple(
            Bar(
                f"{one.world_size:,}",
                one.throughput_ratio / most,
                one.ideal / most,
                f"{format_factor(one.throughput_ratio)}, {format_share(one.efficiency)}",
            )
            for one in result.points
        ),
        legend="The rest of a bar reaches to ideal: throughput that grows like the ranks.",
    )
    return Section("Throughput against ideal", (chart, _speed_table(result)))


def _speed_table(result: Scaling) -> Table:
    rows = tuple(
        (
            f"{one.world_size:,}",
            NOT_MEASURED if one.nodes is None else f"{one.nodes:,}",
            format_ns(one.step_ns),
            format_ns(one.ideal_step_ns),
            NOT_MEASURED if one.examples_per_s is None else format_count(round(one.examples_per_s)),
            format_factor(one.throughput_ratio),
            format_factor(one.ideal),
            format_share(one.efficiency),
        )
        for one in result.points
    )
    headers = ("ranks", "nodes", "step", "ideal step", "examples/s", "speedup", "ideal", "efficiency")
    basis = (
        "examples/s of the whole job"
        if result.basis == "examples"
        else "steps/s x ranks, as if all runs had the same batch per rank"
    )
    return Table(
        caption="Each run",
        columns=tuple(Column(header) for header in headers),
        rows=rows,
        legend=f"step: median over ranks and steps. speedup: throughput ({basis}) over that of the smallest "
        "run. ideal step: the smallest run's, for the same examples per rank. efficiency = speedup / ideal = "
        "ideal step / step.",
    )


def _lost(result: Scaling) -> Section:
    title = "Where the lost time goes"
    shown = [(one, one.lost) for one in result.points[1:]]
    if all(lost is None for _, lost in shown):
        return Section(title, (Paragraph("Not measured: no device activity inside a step was recorded."),))
    used = [
        part
        for part in PARTS
        if any(lost is not None and lost.part_ns(part) != 0 for _, lost in shown) or part == "compute"
    ]
    rows = tuple(
        (
            f"{one.world_size:,}",
            format_ns(one.lost_ns),
            _of_step(one),
            *(NOT_MEASURED if lost is None else format_ns(lost.part_ns(part)) for part in used),
        )
        for one, lost in shown
    )
    return Section(
        title,
        (
            Table(
                caption="Time lost per step against the ideal step; the parts sum to it",
                columns=tuple(
                    Column(header)
                    for header in ("ranks", "lost", "of step", *(_PART_HEADERS.get(p, p) for p in used))
                ),
                rows=rows,
                legend="Each part: this run's minus that of an ideal step; negative: shorter than there. "
                "transfer, wait, unsplit: communication with nothing computing. sync: transfer of the 2D "
                "replica sync. compute: longer kernels.",
            ),
        ),
    )


def _of_step(point: ScalingPoint) -> str:
    return format_share(point.lost_ns / point.step_ns)


def _ahead(result: Scaling) -> Section:
    title = "Forecast for larger sizes"
    if result.model is None:
        return Section(title, (Paragraph(f"None: {result.no_forecast or 'not made'}."),))
    headers = ("ranks", "step", "ideal", "speedup", "interval", "efficiency", "examples/s")
    table = Table(
        caption="If the job stays as it is and only grows",
        columns=tuple(Column(header) for header in headers),
        rows=tuple(_ahead_row(one) for one in result.forecast),
        legend=_model_text(result.model),
    )
    return Section(title, (table,))


def _ahead_row(one: ForecastPoint) -> tuple[str, ...]:
    speedup, rate = one.throughput_ratio, one.examples_per_s
    none = speedup.low is None or speedup.high is None
    return (
        f"{one.world_size:,}",
        format_ns(one.step_ns.expected),
        format_factor(one.ideal),
        format_factor(speedup.expected),
        "none" if none else f"{format_factor(speedup.low)} to {format_factor(speedup.high)}",
        format_share(one.efficiency.expected),
        NOT_MEASURED if rate is None else format_count(round(rate.expected)),
    )


def _model_text(model: ForecastModel) -> str:
    fitted = f"Lost time is taken to grow like {model.formula}, m = ranks / ranks of the smallest run"
    if model.residual_ns is None:
        return f"{fitted}: two runs cannot tell how it grows. A third size would give an interval."
    return (
        f"{fitted} ({_SHAPES.get(model.shape, model.shape)}); that fits best and leaves "
        f"{format_ns(model.residual_ns)}. interval: of the speedup, {model.interval:.0%}; it also holds "
        "what the next slower and the next faster growth would give."
    )


def _notes(result: Scaling) -> Section | None:
    lines = [f"{_names(note.runs, len(result.points))}: {note.message}" for note in result.notes]
    lines += [f"{file_name(one.run)}: left out: {one.reason}." for one in result.left_out]
    if not lines:
        return None
    return Section("What to know about these runs", (Bullets(tuple(lines)),))


def _names(runs: list[str], count: int) -> str:
    return "all runs" if len(runs) == count > 1 else ", ".join(file_name(run) for run in runs)


def _runs(result: Scaling) -> Section:
    rows = tuple(
        (f"{one.world_size:,} {'rank' if one.world_size == 1 else 'ranks'}", _run_text(one))
        for one in result.points
    )
    blocks: tuple[Block, ...] = (Facts(rows),)
    return Section("The runs", blocks, detail=True)


def _run_text(one: ScalingPoint) -> str:
    read = (
        "all ranks read"
        if one.ranks_read == one.world_size
        else f"{one.ranks_read:,} of {one.world_size:,} ranks read"
    )
    batch = "batch not known" if one.batch_per_rank is None else f"batch {one.batch_per_rank:,} per rank"
    steps = "1 step" if one.steps == 1 else f"{one.steps:,} steps"
    device = f"{'simulated, ' if one.simulated else ''}{one.device or 'device not recorded'}"
    return f"{file_name(one.run)}: {device}, {read}, {steps}, {batch}"
