"""Geometry of the stacked bars: which share of its row each part takes. The template draws them as SVG."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from traceinsight.base.units import format_ns, format_share
from traceinsight.diagnosis import Diagnosis, ForwardShare, Partition
from traceinsight.report.sections.ranks import late_ranks

MOST_BARS = 64
"""More bars than this are a texture, not a chart: then the late ranks and the extremes are drawn."""

_LABEL_BELOW = 0.08
"""A narrower segment has no room for its percentage; hovering shows it."""

PARTS = (
    ("compute", "compute_ns"),
    ("transfer", "exposed_comm_transfer_ns"),
    ("wait", "exposed_comm_wait_ns"),
    ("unsplit", "exposed_comm_unsplit_ns"),
    ("copy", "exposed_copy_ns"),
    ("idle", "idle_ns"),
)
_FORWARD_PARTS = (
    ("transfer", "exposed_transfer_ns"),
    ("wait", "exposed_wait_ns"),
    ("unsplit", "exposed_unsplit_ns"),
)


@dataclass(frozen=True, slots=True)
class Segment:
    """One part of a bar. ``start`` and ``share`` are of the bar's whole length (0..1)."""

    part: str
    start: float
    share: float
    label: str
    title: str


@dataclass(frozen=True, slots=True)
class Bar:
    """One rank."""

    label: str
    late: bool
    segments: tuple[Segment, ...]


@dataclass(frozen=True, slots=True)
class BarChart:
    """Bars of equal length below each other; ``parts`` are those that occur, for the key."""

    title: str
    note: str
    parts: tuple[str, ...]
    bars: tuple[Bar, ...]


def partition_bars(diagnosis: Diagnosis, *, all_ranks: bool) -> BarChart | None:
    """The step window of each rank; None when there is none."""
    return _chart(
        diagnosis, diagnosis.partition, PARTS, "window_ns", "step window", all_ranks=all_ranks
    )  # fmt: skip


def forward_bars(diagnosis: Diagnosis, *, all_ranks: bool) -> BarChart | None:
    """Exposed communication within the forward span of each rank; None when no forward was found."""
    return _chart(
        diagnosis, diagnosis.forward, _FORWARD_PARTS, "span_ns", "forward span", all_ranks=all_ranks
    )  # fmt: skip


def _chart(
    diagnosis: Diagnosis,
    rows: Sequence[Partition] | Sequence[ForwardShare],
    parts: Sequence[tuple[str, str]],
    whole: str,
    of: str,
    *,
    all_ranks: bool,
) -> BarChart | None:
    totals = _totals(rows, [whole, *(name for _, name in parts)])
    known = {rank: total for rank, total in totals.items() if total[whole] > 0}
    if not known:
        return None
    late = late_ranks(diagnosis)
    shown = sorted(known) if all_ranks or len(known) <= MOST_BARS else _outstanding(known, late)
    few = (
        f" {len(shown)} of {len(known)} ranks: the late ones and the extremes."
        if len(shown) < len(known)
        else ""
    )
    bars = tuple(_bar(rank, known[rank], parts, whole, of, late=rank in late) for rank in shown)
    present = {segment.part for bar in bars for segment in bar.segments}
    return BarChart(
        title=f"Share of each rank's {of}",
        note=f"All analysed steps together, so that parts add up; the table has medians over steps.{few}",
        parts=tuple(part for part, _ in parts if part in present),
        bars=bars,
    )


def _totals(rows: Iterable[object], names: Sequence[str]) -> dict[int, dict[str, int]]:
    totals: dict[int, dict[str, int]] = defaultdict(lambda: dict.fromkeys(names, 0))
    for row in rows:
        of_rank = totals[getattr(row, "rank")]  # noqa: B009 - Partition and ForwardShare share no base
        for name in names:
            of_rank[name] += getattr(row, name)
    return totals


def _bar(
    rank: int, total: Mapping[str, int], parts: Sequence[tuple[str, str]], whole: str, of: str, *, late: bool
) -> Bar:
    segments, start = [], 0.0
    for part, name in parts:
        share = total[name] / total[whole]
        if share > 0:
            label = f"{share:.0%}" if share >= _LABEL_BELOW else ""
            title = (
                f"Rank {rank}, {part}: {format_share(share)} of its {of} ({format_ns(total[name])} in all)"
            )
            segments.append(Segment(part, start, share, label, title))
        start += share
    return Bar(f"{rank} late" if late else str(rank), late, tuple(segments))


def _outstanding(totals: Mapping[int, Mapping[str, int]], late: set[int]) -> list[int]:
    """Of many ranks: late ones, then those at both ends of the first part (compute, or transfer)."""
    room = MOST_BARS // 4
    first = list(next(iter(totals.values())))[1]
    whole = next(iter(next(iter(totals.values()))))
    ordered = sorted(totals, key=lambda rank: totals[rank][first] / totals[rank][whole])
    return sorted({*sorted(late & set(totals))[:room], *ordered[:room], *ordered[-room:]})
