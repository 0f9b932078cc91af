"""Who sends how much to whom: a heat map of ranks by ranks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from traceinsight.base.units import format_bytes
from traceinsight.diagnosis import AllToAllMatrix, Diagnosis

from ..theme import Palette, figure

TOTAL = "all"

_WRITTEN_UP_TO = 8  # ranks; with more, numbers do not fit their cells on a phone


@dataclass(frozen=True, slots=True)
class Matrix:
    """``cells[i][j]``: bytes per step from ``ranks[i]`` to ``ranks[j]``, None where not recorded."""

    ranks: Sequence[int]
    cells: Sequence[Sequence[float | None]]


def matrix_names(diagnosis: Diagnosis) -> dict[str, str]:
    """Key for the URL -> what to call each kind; they are told apart by number, since labels may repeat."""
    return {
        str(number): f"{one.label or 'all-to-all'} ({one.phase})"
        for number, one in enumerate(_whole(diagnosis), start=1)
    }


def matrix_named(diagnosis: Diagnosis, key: str) -> Matrix:
    """One kind, or the sum of all. A pair that one kind did not record is not known in the sum."""
    found = _whole(diagnosis)
    chosen = found if key == TOTAL else [found[int(key) - 1]]
    ranks = sorted({rank for one in chosen for rank in one.ranks})
    return Matrix(ranks, [[_sum(chosen, sender, receiver) for receiver in ranks] for sender in ranks])


def _whole(diagnosis: Diagnosis) -> list[AllToAllMatrix]:
    """Those as wide and as high as they have ranks: a report may come from anywhere."""
    return [
        one
        for one in diagnosis.all_to_all_matrix
        if [len(row) for row in one.sent_bytes] == [len(one.ranks)] * len(one.ranks)
    ]


def _sum(matrices: Sequence[AllToAllMatrix], sender: int, receiver: int) -> float | None:
    values = [
        one.sent_bytes[one.ranks.index(sender)][one.ranks.index(receiver)]
        for one in matrices
        if sender in one.ranks and receiver in one.ranks
    ]
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def matrix_chart(matrix: Matrix, colors: Palette) -> go.Figure | None:
    """Sender by row, receiver by column."""
    known = [cell for row in matrix.cells for cell in row if cell is not None]
    if not known or not max(known):
        return None
    names = [str(rank) for rank in matrix.ranks]
    written = len(names) <= _WRITTEN_UP_TO
    drawing = figure(colors, height=min(140 + 30 * len(names), 720), x_title="to rank", y_title="from rank")
    drawing.add_heatmap(
        x=names,
        y=names,
        z=[[None if cell is None else cell / 1e6 for cell in row] for row in matrix.cells],
        text=[["" if cell is None else f"{cell / 1e6:.3g}" for cell in row] for row in matrix.cells],
        texttemplate="%{text}" if written else None,
        customdata=[[format_bytes(cell) for cell in row] for row in matrix.cells],
        colorscale=[[0, colors.panel], [1, colors.part("transfer")]],
        zmin=0,
        zmax=max(known) / 1e6,
        xgap=2 if len(names) <= 64 else 0,
        ygap=2 if len(names) <= 64 else 0,
        hoverongaps=False,
        showscale=not written,
        colorbar={"title": {"text": "MB"}, "thickness": 12},
        hovertemplate="rank %{y} to rank %{x}: %{customdata} per step<extra></extra>",
    )
    drawing.update_xaxes(type="category", showgrid=False, nticks=32)
    drawing.update_yaxes(type="category", showgrid=False, autorange="reversed", nticks=32)
    return drawing


def matrix_rows(matrix: Matrix) -> list[dict[str, Any]]:
    """One row per pair of ranks, in MB."""
    return [
        {"from": sender, "to": receiver, "sent": None if cell is None else cell / 1e6}
        for sender, row in zip(matrix.ranks, matrix.cells, strict=True)
        for receiver, cell in zip(matrix.ranks, row, strict=True)
    ]
