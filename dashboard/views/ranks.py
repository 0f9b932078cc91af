"""Ranks and steps: who waits, who is waited for, and one rank in detail."""

from __future__ import annotations

import streamlit as st

from traceinsight.diagnosis import Diagnosis

from ..charts.partition import PARTS, idle_causes
from ..charts.steps import QUANTITIES, heat_map, step_times
from ..context import Context, linked_choice
from ..theme import MEANINGS
from .parts import chart, number, prose, table

ALL_STEPS = "all"
"""As on the timeline: the step of a link means the same on every page."""


def draw(context: Context) -> None:
    """Stragglers in words, the heat map, the distribution, the drill-down."""
    diagnosis, colors = context.diagnosis, context.colors
    prose(context, "Stragglers")
    if not diagnosis.partition:
        chart(
            "Ranks by step", None, "Not measured: no device activity inside a step was recorded.", key="none"
        )
        return
    quantity = linked_choice("Show", "show", list(QUANTITIES), names=lambda key: QUANTITIES[key].title)
    chart(
        f"{QUANTITIES[quantity].title}, rank by step",
        heat_map(diagnosis, quantity, colors),
        "Not measured: no collective was found on all its members.",
        note=f"{QUANTITIES[quantity].meaning[:1].upper()}{QUANTITIES[quantity].meaning[1:]}.",
        key="heat",
    )
    chart(
        "How long steps take", step_times(diagnosis, colors), "Not measured.", key="times",
        note="Every dot is a step; the box spans the middle half of them.",
    )  # fmt: skip
    _one_rank(context)


def _one_rank(context: Context) -> None:
    diagnosis = context.diagnosis
    st.subheader("One rank", anchor=False)
    ranks = sorted({row.rank for row in diagnosis.partition})
    late = {str(rank) for one in diagnosis.stragglers for rank in one.ranks}
    chosen = linked_choice(
        "Rank",
        "rank",
        [str(rank) for rank in ranks],
        names=lambda rank: f"{rank} (late)" if rank in late else rank,
    )
    table(
        rank_rows(diagnosis, int(chosen)),
        window=number("step window", "ms"),
        **{part: number(part, "% of window", digits=1, meaning=MEANINGS[part]) for part in PARTS},
    )
    rows = [row for row in diagnosis.partition if row.rank == int(chosen)]
    step = linked_choice(
        "Step",
        "step",
        [ALL_STEPS, *(str(row.step) for row in sorted(rows, key=lambda row: row.step))],
        names=lambda one: "all analysed steps" if one == ALL_STEPS else f"step {one}",
    )
    rows = [row for row in rows if step in {ALL_STEPS, str(row.step)}]
    over = "mean over the analysed steps" if step == ALL_STEPS else f"step {step}"
    chart(
        f"Why rank {chosen} was idle", idle_causes(rows, context.colors), "It was never idle.", key="idle",
        note=f"Idle time by cause, {over}.",
    )  # fmt: skip


def rank_rows(diagnosis: Diagnosis, rank: int) -> list[dict[str, float]]:
    """One row per step: the window in ms, the parts in percent of it."""
    return [
        {
            "step": row.step,
            "window": row.window_ns / 1e6,
            **{part: 100 * getattr(row, field) / row.window_ns for part, field in PARTS.items()},
        }
        for row in sorted(diagnosis.partition, key=lambda row: row.step)
        if row.rank == rank and row.window_ns
    ]
