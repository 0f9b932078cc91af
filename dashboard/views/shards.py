"""Shards: which rank owns which tables, what that costs, and a placement that is more even."""

from __future__ import annotations

import csv
import io
from typing import Any

import streamlit as st

from traceinsight import api
from traceinsight.base.units import format_factor
from traceinsight.diagnosis import Diagnosis
from traceinsight.diagnosis.placement import Placement
from traceinsight.diagnosis.shards import HEAVY_FACTOR

from ..charts.balance import balance_map, heaviest, heavy_bars, planned_against_counted
from ..charts.shards import cost_of, load_bars
from ..context import Context, linked_choice, show
from ..text import name, paragraph, tile
from .parts import chart, number, table

ALL_RANKS = "all"
_CAPTURE = """with Capture(
    folder,
    tables=tables,        # EmbeddingBagConfigs
    plan=model.plan,      # the sharding plan
    estimates=options,    # what the planner expected, if one chose
    measure=model,        # counts ids and bytes per table and rank
) as recording:
    ..."""


def draw(context: Context) -> None:
    """The placement today and as proposed, what stands out, every shard."""
    diagnosis = context.diagnosis
    if not diagnosis.shards and not diagnosis.rank_loads:
        _how_to_capture("Not measured: no run.json names the tables, and no embedding kernel was recorded.")
    elif not diagnosis.shards:
        _balance(context)
        _how_to_capture("Which rank owns which table was not recorded. run.json says it when written so:")
    else:
        proposal = None if context.traces is None else api.placement(context.traces())
        _placement(context, proposal)
        _heaviest(context)
        _balance(context)
        _planned(context)
        _shards(context, proposal)


def _how_to_capture(reason: str) -> None:
    show(paragraph(reason, "muted"))
    st.code(_CAPTURE, language="python")
    show(paragraph("Capture is in traceinsight.capture; docs/capture.md has its arguments.", "muted"))


def _placement(context: Context, found: Placement | None) -> None:
    diagnosis = context.diagnosis
    if found is not None and found.shards:
        show(tiles(found))
    cost = cost_of(diagnosis, found)
    chart(
        "Load of each rank, by shard",
        None if cost is None else load_bars(cost, context.colors),
        "Not measured: what each shard costs is not known.",
        key="loads",
        note="" if cost is None else f"{cost.meaning[:1].upper()}{cost.meaning[1:]}.",
    )
    if found is None:
        if diagnosis.shards:
            show(
                paragraph("A new placement is worked out of run.json, which a report does not hold.", "muted")
            )
    elif found.reason is not None:
        show(paragraph(f"No placement is proposed: {found.reason}.", "muted"))
    elif not found.moved:
        show(paragraph("No other placement of these shards was found that is more even.", "muted"))
    else:
        show(
            paragraph(
                "Proposed: the most expensive shard first, to the rank with the least so far. Shards stay "
                "whole; it does not try to move few of them. The page What-if says what it gains, as the "
                "change balance.",
                "muted",
            )
        )
        st.download_button(
            "Proposed placement as CSV", data=lambda: placement_csv(found), file_name="placement.csv",
            mime="text/csv", on_click="ignore",
        )  # fmt: skip


def tiles(found: Placement) -> str:
    """How even the placement is, and what it takes."""
    busiest = max(found.ranks, key=lambda one: one.today_bytes)
    return '<div class="tiles">{}</div>'.format(
        "".join(
            (
                tile(
                    "Today", format_factor(found.before), f"rank {busiest.rank}, the busiest, over the mean"
                ),
                tile("As proposed", format_factor(found.after), "busiest rank over the mean"),
                tile("To move", f"{found.moved:,} of {len(found.shards):,}", "shards change their rank"),
            )
        )
    )


def _heaviest(context: Context) -> None:
    drawing = heavy_bars(context.diagnosis, context.colors)
    chart(
        "Heaviest shards and hot partitions", drawing, "Not measured: ids per table were not counted.",
        key="heavy", note=hot_words(context.diagnosis),
    )  # fmt: skip
    if drawing is None:
        _how_to_capture("They can be counted while training:")


def hot_words(diagnosis: Diagnosis) -> str:
    """What stands out, in a sentence."""
    found = heaviest(diagnosis)
    hot = sum(one.is_hot for one in found)
    several = [one for one in found if (one.of_table or 0) >= HEAVY_FACTOR]
    if not hot:
        return f"None stands out: no shard has {HEAVY_FACTOR:g} times the mean shard or more."
    said = (
        f"{hot:,} of {len(found):,} shards have {HEAVY_FACTOR:g} times the mean shard or more. Where one is "
        "among equal hash partitions, a few ids take most of the table."
    )
    if several:
        most = max(several, key=lambda one: one.of_table or 0)
        said += (
            f" Within one table, {name(most.row.table)} on rank {most.row.rank} stands out most: "
            f"{format_factor(most.of_table)} the mean shard of that table."
        )
    return said


def _balance(context: Context) -> None:
    chart(
        "The load of each rank, by every measure", balance_map(context.diagnosis, context.colors),
        "Not measured: neither lookups nor exchanges of vectors were recorded.", key="balance",
        note="Each measure over its mean of ranks: 1 is even. Lookup time and vectors sent are from the "
        "trace; ids and bytes were counted while training; planned time is the planner's estimate.",
    )  # fmt: skip


def _planned(context: Context) -> None:
    chart(
        "The planner's estimate against what was counted",
        planned_against_counted(context.diagnosis, context.colors),
        "Not compared: run.json does not hold both the planner's estimates and counted ids.", key="planned",
        note="One dot per shard. Above the line: heavier than the planner thought; it stands out from "
        f"{HEAVY_FACTOR:g} times on.",
    )  # fmt: skip


def _shards(context: Context, proposal: Placement | None) -> None:
    st.subheader("Every shard", anchor=False)
    ranks = sorted({row.rank for row in context.diagnosis.shards})
    chosen = linked_choice(
        "Rank", "rank", [ALL_RANKS, *map(str, ranks)],
        names=lambda rank: "all ranks" if rank == ALL_RANKS else f"rank {rank}",
    )  # fmt: skip
    rows = shard_rows(context.diagnosis, proposal)
    rows = [row for row in rows if chosen in {ALL_RANKS, str(row["rank"])}]
    table(
        rows,
        ids=number("ids", "per step", digits=1, meaning="looked up by the rank as owner of the table"),
        read=number("read", "kB per step", digits=1, meaning="bytes of the rows its lookups read"),
        returned=number("returned", "kB per step", digits=1, meaning="bytes of vectors sent back, unencoded"),
        of_rank=number("of its rank", "%", digits=1, meaning="of the ids that its rank looks up"),
        of_all=number("of all", "%", digits=1, meaning="of the ids that all ranks look up"),
        times=number("times mean", "", digits=2, meaning="counted, over the mean shard"),
        planned=number("planned", "ms", meaning="the planner's estimate of compute and exchange per step"),
    )


def shard_rows(diagnosis: Diagnosis, placement: Placement | None) -> list[dict[str, Any]]:
    """One row per table and rank, the heaviest first; ``proposed`` only where a placement is proposed."""
    times = {(one.row.table, one.row.rank): one.factor for one in heaviest(diagnosis)}
    new: dict[tuple[str, int], set[int]] = {}
    for one in placement.shards if placement is not None else ():
        new.setdefault((one.table, one.rank), set()).add(one.proposed_rank)
    rows = []
    for row in diagnosis.shards:
        place = (row.table, row.rank)
        rows.append(
            {
                "table": name(row.table),
                "rank": row.rank,
                **({"proposed": ", ".join(map(str, sorted(new.get(place, ()))))} if new else {}),
                "ids": row.ids_per_step,
                "read": _thousands(row.read_bytes_per_step),
                "returned": _thousands(row.returned_bytes_per_step),
                "of_rank": None if row.share_of_rank is None else 100 * row.share_of_rank,
                "of_all": None if row.share_of_all is None else 100 * row.share_of_all,
                "times": times.get(place),
                "planned": None if row.planned_ns is None else row.planned_ns / 1e6,
                "rows": row.rows,
                "dim": row.dim,
            }
        )
    return sorted(rows, key=lambda row: -(row["times"] or 0))


def _thousands(value: float | None) -> float | None:
    return None if value is None else value / 1e3


def placement_csv(placement: Placement) -> str:
    """Every shard with its owner today and the proposed one."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["table", "rows", "dim", "rank", "proposed_rank", "moves", "cost_bytes"])
    for one in placement.shards:
        moves = "yes" if one.rank != one.proposed_rank else "no"
        writer.writerow(
            [name(one.table), one.rows, one.dim, one.rank, one.proposed_rank, moves, one.cost_bytes]
        )
    return text.getvalue()
