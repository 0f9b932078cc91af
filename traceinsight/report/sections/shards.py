"""Embedding load per rank, and the shards that hold most of it."""

from __future__ import annotations

from traceinsight.base.units import format_bytes, format_count, format_factor, format_ns, format_share
from traceinsight.diagnosis import Diagnosis, RankLoad, ShardRow
from traceinsight.diagnosis.shards import Measure
from traceinsight.report.document import Block, Column, Section, Table
from traceinsight.report.options import ReportOptions
from traceinsight.report.sections.ranks import late_ranks, medians_by_rank, rank_rows, summary_note

_SHOWN: tuple[Measure, ...] = ("lookup_ns", "sent_bytes_per_step", "ids_per_step", "read_bytes_per_step")
_LOOKUP, _IDS = 1, 3  # columns of a row, after the number of tables
_SHARDS_SHOWN = 5


def section(diagnosis: Diagnosis, options: ReportOptions) -> Section | None:
    """Load by rank and the largest shards; None where nothing of the embeddings was recorded."""
    blocks: list[Block] = []
    if any(_measured(load) for load in diagnosis.rank_loads):
        blocks.append(_loads(diagnosis, options))
    if any(row.ids_per_step is not None for row in diagnosis.shards):
        blocks.append(_largest(diagnosis))
    return Section("Embedding load", tuple(blocks), detail=True) if blocks else None


def _measured(load: RankLoad) -> bool:
    return any(value is not None for value in _values(load)[1:])


def _values(load: RankLoad) -> tuple[float | None, ...]:
    return (
        load.tables,
        load.lookup_ns,
        load.sent_bytes_per_step,
        load.ids_per_step,
        load.read_bytes_per_step,
    )


def _loads(diagnosis: Diagnosis, options: ReportOptions) -> Table:
    per_rank = medians_by_rank(diagnosis.rank_loads, _values)
    note = summary_note(per_rank, "lookup time and ids", all_ranks=options.all_ranks)
    uneven = {one.measure: one.imbalance for one in diagnosis.load_balance}
    worst = ("", *(format_factor(uneven.get(measure)) for measure in _SHOWN))
    rows = rank_rows(
        per_rank,
        (format_count, format_ns, format_bytes, format_count, format_bytes),
        late=late_ranks(diagnosis),
        extreme_by=(_LOOKUP, _IDS),
        all_ranks=options.all_ranks,
    )
    return Table(
        caption="Embedding tables and their load per step, by rank",
        columns=tuple(Column(name) for name in ("rank", "tables", "lookup", "sent", "ids", "read")),
        rows=(*rows, ("max / mean", *worst)),
        legend=(
            "lookup = lookups and their backward, from the trace; sent = vectors put into forward's "
            f"all-to-all; ids, read = ids looked up and bytes of their rows, from run.json.{note}"
        ),
    )


def _largest(diagnosis: Diagnosis) -> Table:
    counted = [row for row in diagnosis.shards if row.ids_per_step is not None]
    counted.sort(key=lambda row: (-(row.ids_per_step or 0.0), row.table, row.rank))
    shown = counted[:_SHARDS_SHOWN]
    caption = f"The {len(shown)} shards with most ids, of {len(counted)}" if shown else ""
    return Table(
        caption=caption,
        columns=(
            Column("table", name=True),
            *(Column(name) for name in ("rank", "ids/step", "% rank", "% all", "read", "returned")),
        ),
        rows=tuple(_shard(row) for row in shown),
        legend="% rank, % all = share of the ids that the rank, that all ranks look up.",
    )


def _shard(row: ShardRow) -> tuple[str, ...]:
    return (
        row.table,
        str(row.rank),
        format_count(row.ids_per_step),
        format_share(row.share_of_rank),
        format_share(row.share_of_all),
        format_bytes(row.read_bytes_per_step),
        format_bytes(row.returned_bytes_per_step),
    )
