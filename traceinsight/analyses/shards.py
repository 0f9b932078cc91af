"""Which rank owns which tables, what they cost it, and how evenly that is spread."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from traceinsight.base import intervals
from traceinsight.base.intervals import Spans
from traceinsight.base.kernel_families import EMBEDDING, family_of
from traceinsight.base.labels import LOOKUP_LABEL
from traceinsight.base.manifest.table_plan import TablePlan, TableShard, table_plan
from traceinsight.base.notes import DataNote
from traceinsight.base.statistics import median
from traceinsight.diagnosis.shards import LOADS, LoadBalance, RankLoad, ShardRow
from traceinsight.trace.activity import blocked_spans, event_spans
from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import EventKind
from traceinsight.trace.trace_set import TraceSet


@dataclass(frozen=True, slots=True)
class Shards:
    """The shards by rank and table, what they cost each rank, how even that is, and notes on the manifest."""

    rows: tuple[ShardRow, ...]
    loads: tuple[RankLoad, ...]
    balance: tuple[LoadBalance, ...]
    notes: tuple[DataNote, ...]


def find_shards(trace_set: TraceSet) -> Shards:
    """Join the manifest's plan and counts with the lookup time measured on each rank.

    Without a manifest there are no rows, and the loads hold what the trace shows.
    """
    plan = table_plan(trace_set.manifest)
    lookup, sent = _lookup_ns(trace_set), _sent_bytes(trace_set)
    loads = _loads(trace_set, plan, lookup, sent) if lookup or sent or plan.shards else ()
    return Shards(_rows(plan), loads, _balances(loads), _notes(plan))


def _notes(plan: TablePlan) -> tuple[DataNote, ...]:
    if not plan.malformed:
        return ()
    message = (
        f"{plan.malformed} entries of run.json about embedding tables are not as documented and are left out."
    )
    return (DataNote("warning", "malformed-manifest", message, count=plan.malformed),)


def _rows(plan: TablePlan) -> tuple[ShardRow, ...]:
    of_rank: dict[int, float] = defaultdict(float)
    for shard in plan.shards:
        of_rank[shard.rank] += shard.ids_per_step or 0.0
    of_all = sum(of_rank.values())
    return tuple(
        ShardRow(
            rank=shard.rank,
            table=shard.table,
            rows=shard.rows,
            dim=shard.dim,
            ids_per_step=shard.ids_per_step,
            share_of_rank=_share(shard.ids_per_step, of_rank[shard.rank]),
            share_of_all=_share(shard.ids_per_step, of_all),
            read_bytes_per_step=shard.read_bytes_per_step,
            returned_bytes_per_step=shard.returned_bytes_per_step,
            planned_ns=_ns(shard.planned_ms),
        )
        for shard in plan.shards
    )


def _share(part: float | None, whole: float) -> float | None:
    return None if part is None or not whole else part / whole


def _ns(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else round(milliseconds * 1e6)


def _loads(
    trace_set: TraceSet, plan: TablePlan, lookup: dict[int, int], sent: dict[int, float]
) -> tuple[RankLoad, ...]:
    owned: dict[int, list[TableShard]] = defaultdict(list)
    for shard in plan.shards:
        owned[shard.rank].append(shard)
    counted = any(shard.ids_per_step is not None for shard in plan.shards)
    ranks = sorted({trace.rank for trace in trace_set.ranks} | set(owned))

    def total(rank: int, amount: Callable[[TableShard], float | None]) -> float | None:
        """What was counted of a rank. One that reported and owns nothing has a load of zero."""
        known = [value for shard in owned[rank] if (value := amount(shard)) is not None]
        if known or (counted and not owned[rank] and rank not in plan.unmeasured_ranks):
            return sum(known)
        return None

    return tuple(
        RankLoad(
            rank=rank,
            tables=len(owned[rank]) if plan.shards else None,
            lookup_ns=lookup.get(rank),
            sent_bytes_per_step=sent.get(rank),
            ids_per_step=total(rank, lambda shard: shard.ids_per_step),
            read_bytes_per_step=total(rank, lambda shard: shard.read_bytes_per_step),
            returned_bytes_per_step=total(rank, lambda shard: shard.returned_bytes_per_step),
            planned_ns=_ns(_sum(shard.planned_ms for shard in owned[rank])),
        )
        for rank in ranks
    )


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _balances(loads: Sequence[RankLoad]) -> tuple[LoadBalance, ...]:
    found = []
    for measure in LOADS:
        known = {load.rank: value for load in loads if (value := getattr(load, measure)) is not None}
        mean = sum(known.values()) / len(known) if known else 0.0
        if len(known) > 1 and mean > 0:
            rank = max(known, key=lambda one: known[one])
            found.append(
                LoadBalance(
                    measure=measure,
                    largest_rank=rank,
                    largest=float(known[rank]),
                    mean=mean,
                    imbalance=known[rank] / mean,
                )
            )
    return tuple(found)


def _lookup_ns(trace_set: TraceSet) -> dict[int, int]:
    """Time per step in which a rank's device works on embeddings, median over steady steps, in ns.

    Empty when no rank recorded any: a rank without is then not a rank that owns nothing.
    """
    spans = {trace.rank: _embedding_spans(trace) for trace in trace_set.ranks if trace.device_recorded}
    if not any(len(one) for one in spans.values()):
        return {}
    return {
        trace.rank: round(median(durations))
        for trace in trace_set.ranks
        if trace.rank in spans and (durations := _per_step(trace, spans[trace.rank], trace_set.steps))
    }


def _sent_bytes(trace_set: TraceSet) -> dict[int, float]:
    """What each rank puts into forward's all-to-all per steady step: the vectors of its tables, in bytes.

    Without the ranks of which a size is missing.
    """
    sizes: dict[int, list[int | None]] = defaultdict(list)
    for one in trace_set.collectives:
        if one.operation == "all_to_all" and one.phase == "forward" and one.step in trace_set.steps:
            for rank, member in zip(one.ranks, one.members, strict=True):
                sizes[rank].append(member.in_bytes)
    known = {rank: [size for size in found if size is not None] for rank, found in sizes.items()}
    return {
        rank: sum(found) / len(trace_set.steps)
        for rank, found in known.items()
        if len(found) == len(sizes[rank])
    }


def _per_step(trace: RankTrace, spans: Spans, numbers: Sequence[int]) -> list[int]:
    steps = [step for number in numbers if (step := trace.step(number)) is not None]
    return [intervals.measure(intervals.clip(spans, *step.window_ns)) for step in steps]


def _embedding_spans(trace: RankTrace) -> Spans:
    """Kernels of the embedding family; on a CPU rank TorchRec's lookups and the operators of that family."""
    recording = trace.recording
    if trace.has_gpu:
        kernels = recording.of_kind(EventKind.KERNEL)
        return event_spans(trace, recording.named(kernels, lambda name: family_of(name) == EMBEDDING))
    operators = recording.named(
        recording.of_kind(EventKind.CPU_OP), lambda name: family_of(name) == EMBEDDING
    )
    lookups = recording.named(
        recording.of_kind(EventKind.ANNOTATION), lambda name: LOOKUP_LABEL.match(name) is not None
    )
    return intervals.subtract(event_spans(trace, np.concatenate([operators, lookups])), blocked_spans(trace))
