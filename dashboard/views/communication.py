"""Communication: what it costs, whether it transfers or waits, how fast it is."""

from __future__ import annotations

from typing import Any

import streamlit as st

from traceinsight.diagnosis import Diagnosis

from ..charts.communication import by_exposed_time, exposed_bars, kind, size_and_bandwidth
from ..charts.links import against_datasheet, datasheet_rows, not_compared
from ..charts.matrix import TOTAL, matrix_chart, matrix_named, matrix_names, matrix_rows
from ..charts.partition import forward_bars
from ..context import Context, linked_choice, show
from ..text import name, paragraph
from .parts import chart, number, prose, table


def draw(context: Context) -> None:
    """Kinds by exposed time, the share of forward, single collectives."""
    diagnosis, colors = context.diagnosis, context.colors
    chart(
        "Exposed communication by kind",
        exposed_bars(diagnosis, colors),
        "No communication was exposed in the analysed steps."
        if diagnosis.communication
        else "No communication was recorded in the analysed steps.",
        note="Mean over ranks. Exposed: nothing computed meanwhile. Communication behind compute costs no "
        "step time and is not drawn.",
        key="kinds",
    )
    if diagnosis.communication:
        table(
            kind_rows(diagnosis),
            exposed=number(
                "exposed", "ms", significant=True, meaning="while nothing computes, per step, mean over ranks"
            ),
            share=number("exposed", "% of step", significant=True, meaning="of the mean step window"),
            transfer=number("transfer", "ms", significant=True, meaning="after the last member arrived"),
            wait=number("wait", "ms", significant=True, meaning="before the last member arrived"),
            unsplit=number("unsplit", "ms", significant=True, meaning="peers not captured or not matched"),
            busy=number("busy", "ms", significant=True, meaning="time the operation ran, exposed or not"),
            payload=number("payload", "MB", significant=True, meaning="largest a rank sends per step"),
            bus=number("bus bandwidth", "GB/s", significant=True, meaning="as nccl-tests define it"),
        )
    chart(
        "Share of forward",
        forward_bars(diagnosis, colors),
        "No communication of forward was exposed in the analysed steps."
        if diagnosis.forward
        else "Not measured: no forward pass was found in the analysed steps.",
        note="Exposed communication launched by forward, as share of each rank's forward span.",
        key="forward",
    )
    prose(context, "Communication share of forward", "Largest collective of forward")
    chart(
        "Size and bandwidth of single collectives",
        size_and_bandwidth(diagnosis, colors),
        "Not measured: sizes or times of whole collectives were not recorded.",
        key="sizes",
    )
    _links(context)
    _matrix(context)


def _links(context: Context) -> None:
    """Achieved bandwidth by kind; groups whose link is not known are named with the reason."""
    diagnosis = context.diagnosis
    chart(
        "Bandwidth against the datasheet",
        against_datasheet(diagnosis, context.colors),
        "Not compared: no collective with a known bandwidth crosses a link with a known datasheet.",
        note="Median bus bandwidth of each kind, as share of what the slowest link that its group crosses "
        "allows at line rate. Large exchanges reach some 60 to 85 %; small ones are bound by latency.",
        key="links",
    )
    rows = datasheet_rows(diagnosis)
    if rows:
        table(
            rows,
            bus=number(
                "bus bandwidth", "GB/s", significant=True, meaning="median over the kind's collectives"
            ),
            limit=number(
                "datasheet", "GB/s", significant=True, meaning="highest bus bandwidth that the link allows"
            ),
            share=number("share", "%", significant=True, meaning="of the datasheet"),
            payload=number(
                "payload", "MB", significant=True, meaning="median of what one rank sends at once"
            ),
        )
    for sentence in not_compared(diagnosis):
        show(paragraph(sentence, "muted"))


def _matrix(context: Context) -> None:
    """Who sends how much to whom, all kinds together or one of them."""
    title = "All-to-all: bytes from rank to rank"
    names = matrix_names(context.diagnosis)
    if not names:
        chart(
            title,
            None,
            "Not measured: no split sizes were recorded. PyTorch writes them on NCCL exchanges of up to 30 "
            "ranks.",
            key="matrix",
        )
        return
    st.subheader(title, anchor=False)
    chosen = linked_choice(
        "Exchange", "exchange", [TOTAL, *names], names=lambda key: name(names.get(key, "all of them"))
    )
    matrix = matrix_named(context.diagnosis, chosen)
    chart(
        "", matrix_chart(matrix, context.colors), "Nothing is sent.", key="matrix",
        note="MB per step, sender by row, receiver by column. The diagonal stays on its rank. An empty cell "
        "was not recorded by either side.",
    )  # fmt: skip
    with st.expander("Numbers"):
        table(matrix_rows(matrix), sent=number("sent", "MB per step", significant=True))


def kind_rows(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    """All kinds, the costliest first."""
    return [
        {
            "kind": name(kind(row)),
            "operation": name(row.op),
            "phase": name(row.phase),
            "per step": round(row.count_per_step, 1),
            "exposed": row.exposed_ns / 1e6,
            "share": 100 * row.exposed_share,
            "transfer": row.exposed_transfer_ns / 1e6,
            "wait": row.exposed_wait_ns / 1e6,
            "unsplit": row.exposed_unsplit_ns / 1e6,
            "busy": row.busy_ns / 1e6,
            "payload": None if row.bytes_per_step is None else row.bytes_per_step / 1e6,
            "bus": row.bus_gbps,
            "type": name(row.dtype),
        }
        for row in by_exposed_time(diagnosis)
    ]
