"""Recordings from short rows, and lock-step jobs whose every arrival is known by addition."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from traceinsight.trace.recording import (
    MISSING,
    CommArgs,
    Device,
    EventKind,
    EventTable,
    Lane,
    Recording,
)

US = 1_000
MS = 1_000_000
ALL_TO_ALL = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
GEMM = "ampere_sgemm_128x64_nn"
MAIN = "main"


class Row(NamedTuple):
    """One event; times in ns. ``lane`` is a thread's name, or a stream's number for GPU events."""

    kind: EventKind
    name: str
    start: int
    end: int
    lane: str | int = MAIN
    correlation: int = MISSING
    args: CommArgs | None = None


def mark(name: str, start: int, end: int, lane: str = MAIN, args: CommArgs | None = None) -> Row:
    return Row(EventKind.ANNOTATION, name, start, end, lane, args=args)


def step(number: int, start: int, end: int) -> Row:
    return mark(f"ProfilerStep#{number}", start, end)


def operator(name: str, start: int, end: int, lane: str = MAIN) -> Row:
    return Row(EventKind.CPU_OP, name, start, end, lane)


def call(name: str, start: int, end: int, correlation: int = MISSING, lane: str = MAIN) -> Row:
    return Row(EventKind.RUNTIME, name, start, end, lane, correlation)


def kernel(
    name: str, start: int, end: int, correlation: int = MISSING, stream: int = 7, args: CommArgs | None = None
) -> Row:
    return Row(EventKind.KERNEL, name, start, end, stream, correlation, args)


def copy(name: str, start: int, end: int, correlation: int = MISSING, stream: int = 9) -> Row:
    return Row(EventKind.MEMCPY, name, start, end, stream, correlation)


def launched(work: Row, at: int, call_name: str = "cudaLaunchKernel", lane: str = MAIN) -> tuple[Row, Row]:
    """GPU work and the 1 us call that launched it."""
    return call(call_name, at, at + US, work.correlation, lane), work


def flat(rows: Iterable[Any]) -> list[Row]:
    found: list[Row] = []
    for row in rows:
        found += [row] if isinstance(row, Row) else flat(row)
    return found


def recording(
    *rows: Any,
    rank: int | None = 0,
    shift_ns: int = 0,
    world_size: int | None = None,
    backend: str | None = None,
) -> Recording:
    """A recording of these rows (nested lists are flattened), all times moved by ``shift_ns``."""
    events = flat(rows)
    names = sorted({row.name for row in events})
    lanes = sorted({str(row.lane) for row in events})
    events.sort(key=lambda r: (r.start, r.start - r.end, lanes.index(str(r.lane)), r.name))
    streams = {str(row.lane) for row in events if isinstance(row.lane, int)}

    def column(values: Iterable[int], dtype: type = np.int64) -> Any:
        return np.array(list(values), dtype=dtype)

    table = EventTable(
        start_ns=column(row.start + shift_ns for row in events),
        dur_ns=column(row.end - row.start for row in events),
        name=column((names.index(row.name) for row in events), np.int32),
        kind=column((row.kind for row in events), np.int8),
        lane=column((lanes.index(str(row.lane)) for row in events), np.int32),
        correlation=column(row.correlation for row in events),
        external_id=column(MISSING for _ in events),
        size_bytes=column(MISSING for _ in events),
    )
    return Recording(
        file=f"rank{rank}.json", rank=rank, rank_source="none", world_size=world_size, backend=backend,
        host=None, devices=(Device(0, "GPU"),), process_groups=(), strings=tuple(names),
        lanes=tuple(
            Lane("0", name, device=0, stream=int(name)) if name in streams else Lane("1", name)
            for name in lanes
        ),
        events=table,
        comm_args={at: row.args for at, row in enumerate(events) if row.args is not None},
        metadata={}, notes=(),
    )  # fmt: skip


LEAD_NS = 10 * US
TAIL_NS = 100 * US
TRANSFER_NS = 50 * US
OwnTime = Callable[[int, int, int], int]


def lockstep(
    own_ns: OwnTime,
    *,
    ranks: int = 4,
    steps: int = 5,
    collectives: int = 3,
    ahead_ns: Mapping[int, int] | None = None,
    end_error_ns: OwnTime = lambda rank, step, at: 0,
    args: CommArgs | None = None,
    start_ns: int = 0,
) -> list[Recording]:
    """A job whose hosts launch a whole step at once and wait for it, so that the devices alone set the pace.

    In each step a rank computes ``own_ns(rank, step, at)`` before its ``at``-th all-to-all; that one ends for
    all ``TRANSFER_NS`` after the last arrival, and what comes next starts at its end. A step starts
    ``LEAD_NS`` after its host and ends with ``TAIL_NS`` of compute::

        step length = LEAD + sum over collectives of (max over ranks of own + TRANSFER) + TAIL

    ``end_error_ns`` is added to the recorded end only, ``ahead_ns`` to all times of a rank.
    """
    rows: dict[int, list[Any]] = {rank: [] for rank in range(ranks)}
    begin = start_ns
    for number in range(steps):
        device = dict.fromkeys(rows, begin + LEAD_NS)
        for at in range(collectives):
            arrivals = {rank: device[rank] + own_ns(rank, number, at) for rank in rows}
            end = max(arrivals.values()) + TRANSFER_NS
            for rank, own in rows.items():
                correlation = 100 * number + 2 * at + 1
                launch = begin + (2 * at + 1) * US
                error = end_error_ns(rank, number, at)
                compute = kernel(GEMM, device[rank], arrivals[rank], correlation)
                meet = kernel(ALL_TO_ALL, arrivals[rank], end + error, correlation + 1, stream=20, args=args)
                own += [launched(compute, launch), launched(meet, launch + US)]
                device[rank] = end
        last, tail_end = 100 * number + 99, max(device.values()) + TAIL_NS
        for own in rows.values():
            tail = kernel(GEMM, tail_end - TAIL_NS, tail_end, last)
            waited = call("cudaDeviceSynchronize", begin + 60 * US, tail_end, last + 1)
            own += [launched(tail, begin + 50 * US), waited, step(number, begin, tail_end)]
        begin = tail_end
    return [
        recording(own, rank=rank, shift_ns=(ahead_ns or {}).get(rank, 0), world_size=ranks, backend="nccl")
        for rank, own in rows.items()
    ]
