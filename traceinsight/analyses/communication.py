"""The collectives: one by one as matched across ranks, and summed by kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from traceinsight.base import intervals
from traceinsight.base.collective_names import bus_factor
from traceinsight.base.intervals import Spans
from traceinsight.base.statistics import median
from traceinsight.diagnosis import Clock, Collective, CommunicationRow
from traceinsight.trace.activity import Activity, split_by_arrival
from traceinsight.trace.trace_set import MatchedCollective, TraceSet

EVEN_IMBALANCE = 1.05
"""nccl-tests define bus bandwidth for equal sizes: above this max/mean there is throughput only."""

_Kind = tuple[str, str | None, str]


def clocks(trace_set: TraceSet) -> list[Clock]:
    """The clock offset of every rank."""
    return [
        Clock(rank=rank, offset_ns=clock.offset_ns, residual_ns=clock.residual_ns)
        for rank, clock in sorted(trace_set.clocks.items())
    ]


def collectives(trace_set: TraceSet) -> list[Collective]:
    """Every collective of the recording, steady step or not, in order of step and launch."""
    return [_collective(one) for one in trace_set.collectives]


def transfer_ns(one: MatchedCollective) -> int | None:
    """End (median over members) - last arrival; None where a member is missing or nothing synchronises."""
    if not one.complete:
        return None
    return max(0, _median_ns(one.ends_ns) - one.last_arrival_ns)


def message_bytes(one: MatchedCollective) -> int | None:
    """The size S of nccl-tests: what one rank sends (all-reduce, all-to-all), or the whole gathered or
    scattered buffer; the largest over the ranks. None where it was not recorded.
    """  # noqa: D205
    sizes = [
        size
        for part in one.members
        if (size := max((s for s in (part.in_bytes, part.out_bytes) if s is not None), default=None))
        is not None
    ]
    if one.operation in {"all_to_all", "all_reduce"}:
        sizes = [part.in_bytes for part in one.members if part.in_bytes is not None]
    return max(sizes, default=None)


def _median_ns(times: Sequence[int]) -> int:
    # Epoch nanoseconds do not fit a float64: take the median of small differences.
    return times[0] + round(float(np.median(np.array(times, dtype=np.int64) - times[0])))


def _collective(one: MatchedCollective) -> Collective:
    transfer, size = transfer_ns(one), message_bytes(one)
    algorithm = size / transfer if size and transfer else None  # bytes per ns = GB/s
    factor = bus_factor(one.operation, len(one.ranks))
    imbalance = _imbalance(one)
    even = imbalance is None or imbalance <= EVEN_IMBALANCE
    last = one.last_arrival_ns
    return Collective(
        op=one.operation,
        group=_group_name(one),
        step=one.step,
        ranks=list(one.ranks),
        unmatched_ranks=list(one.absent_ranks),
        bytes=size,
        dtype=next((part.dtype for part in one.members if part.dtype), None),
        transfer_ns=transfer,
        wait_ns={rank: last - start for rank, start in zip(one.ranks, one.starts_ns, strict=True)}
        if one.synchronising
        else {},
        bus_gbps=algorithm * factor if algorithm is not None and factor is not None and even else None,
        label=one.label,
        phase=one.phase,
        algorithm_gbps=algorithm,
        size_imbalance=imbalance,
        last_rank=one.ranks[one.starts_ns.index(last)] if len(one.ranks) > 1 and one.synchronising else None,
        synchronising=one.synchronising,
    )


def _group_name(one: MatchedCollective) -> str:
    if one.group is not None:
        return ",".join(map(str, one.group))
    return one.members[0].group_name or "not recorded"


def _imbalance(one: MatchedCollective) -> float | None:
    sent = [part.in_bytes for part in one.members if part.in_bytes is not None]
    if one.operation != "all_to_all" or len(sent) < 2 or not sum(sent):
        return None
    return max(sent) * len(sent) / sum(sent)


@dataclass(frozen=True, slots=True)
class _Times:
    """Time of one kind on one rank in one step, ns."""

    busy: int
    exposed: int
    transfer: int
    wait: int
    unsplit: int


def communication(trace_set: TraceSet, activity: Mapping[int, Activity]) -> list[CommunicationRow]:
    """All collectives of a kind together, by exposed time; steady steps only."""
    by_kind: dict[_Kind, list[MatchedCollective]] = defaultdict(list)
    steady = set(trace_set.steps)
    for one in trace_set.collectives:
        if one.step in steady:
            by_kind[(one.operation, one.label, one.phase)].append(one)
    window_ns = _mean_window_ns(trace_set)
    rows = [_row(kind, found, trace_set, activity, window_ns) for kind, found in by_kind.items()]
    return sorted(rows, key=lambda row: (-row.exposed_ns, row.op, row.label or ""))


def _mean_window_ns(trace_set: TraceSet) -> float:
    windows = [
        step.window_ns[1] - step.window_ns[0]
        for trace in trace_set.ranks
        for step in trace.steps.steps
        if step.number in trace_set.steps and trace.device_recorded
    ]
    return float(np.mean(windows)) if windows else 0.0


def _row(
    kind: _Kind,
    found: Sequence[MatchedCollective],
    trace_set: TraceSet,
    activity: Mapping[int, Activity],
    window_ns: float,
) -> CommunicationRow:
    steps = len(trace_set.steps)
    by_step: dict[int, list[MatchedCollective]] = defaultdict(list)
    for one in found:
        by_step[one.step].append(one)
    times = {step: _step_times(by_step[step], trace_set, activity) for step in trace_set.steps}
    typical = {
        name: round(median([getattr(one, name) for one in times.values()])) for name in _Times.__slots__
    }
    sizes = [message_bytes(one) for one in found]
    bandwidths = [row.bus_gbps for row in map(_collective, found) if row.bus_gbps is not None]
    return CommunicationRow(
        op=kind[0],
        label=kind[1],
        phase=kind[2],
        count_per_step=len(found) / steps,
        bytes_per_step=round(sum(size for size in sizes if size) / steps)
        if all(s is not None for s in sizes)
        else None,
        dtype=next((part.dtype for one in found for part in one.members if part.dtype), None),
        busy_ns=typical["busy"],
        exposed_ns=typical["exposed"],
        exposed_transfer_ns=typical["transfer"],
        exposed_wait_ns=typical["wait"],
        exposed_unsplit_ns=typical["unsplit"],
        exposed_share=typical["exposed"] / window_ns if window_ns else 0.0,
        bus_gbps=median(bandwidths) if bandwidths else None,
        exposed_by_step_ns=[one.exposed for one in times.values()],
    )


def _step_times(
    found: Sequence[MatchedCollective], trace_set: TraceSet, activity: Mapping[int, Activity]
) -> _Times:
    """Mean over the run's ranks of the time this kind took in one step."""
    recorded = [trace for trace in trace_set.ranks if trace.device_recorded]
    if not recorded:
        return _Times(0, 0, 0, 0, 0)
    rank_times = []
    for trace in recorded:
        parts = [(one, one.ranks.index(trace.rank)) for one in found if trace.rank in one.ranks]
        split = split_by_arrival(parts, trace_set.offset_ns(trace.rank))
        rank_times.append(_times(split, activity[trace.rank].compute))
    columns = {
        name: round(float(np.mean([getattr(one, name) for one in rank_times]))) for name in _Times.__slots__
    }
    return _Times(**columns)


def _times(split: Mapping[str, Spans], compute: Spans) -> _Times:
    transfer = split["transfer"]
    wait = intervals.subtract(split["wait"], transfer)
    unsplit = intervals.subtract(intervals.subtract(split["unsplit"], transfer), wait)
    exposed = [intervals.measure(intervals.subtract(spans, compute)) for spans in (transfer, wait, unsplit)]
    busy = sum(intervals.measure(spans) for spans in (transfer, wait, unsplit))
    return _Times(busy, sum(exposed), *exposed)
