"""The discrete-event core: all ranks run one program; every operation is advanced on all ranks at once.

A rank has one host, which issues operations in program order, and streams, which run them in order. Since the
program is the same on every rank, the earliest start of an operation follows from operations before it in
program order on the same rank, and for a collective on all of its members: list scheduling needs no event
queue, only a maximum over predecessors, here as arrays of shape (ranks,), int64 ns.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Int64 = NDArray[np.int64]
Kind = Literal["annotation", "cpu_op", "runtime", "kernel", "memcpy"]

DEVICE_KINDS = frozenset({"kernel", "memcpy"})

MAIN, AUTOGRAD = "main", "autograd"
_CALL_NS = 1_000
"""Host time of a runtime call that launches nothing."""
_SYNC_RETURN_NS = 2_000
"""From the end of the awaited work to the return of the synchronising call."""

_RUNTIME_SHARE = 0.6
"""Of an operator's host time, this share is the launch call, which ends with the operator."""


@dataclass(frozen=True, slots=True)
class Payload:
    """What a collective moves, as its arguments say; arrays have shape (ranks,).

    ``splits`` has shape (group size, group size), elements from member to member (all-to-all-v only), the
    same in every group; ``members`` and ``group_names`` are the ranks and the process group of each group.
    """

    operation: str
    dtype: str
    element_bytes: int
    in_elements: Int64
    out_elements: Int64
    splits: Int64 | None
    members: tuple[tuple[int, ...], ...]
    group_names: tuple[str, ...]
    description: str
    off_node_bytes: Int64


@dataclass(frozen=True, slots=True)
class Row:
    """One event on every rank. ``start_ns`` and ``dur_ns`` have shape (ranks,)."""

    kind: Kind
    name: str
    lane: str | int  # thread, or number of a stream
    start_ns: Int64
    dur_ns: Int64
    step: int
    correlation: int = 0
    external_id: int = 0
    size_bytes: Int64 | None = None
    collective: int | None = None  # index into Machine.collectives
    encloses: int = 0  # annotations: how many of the following rows were issued inside


@dataclass(frozen=True, slots=True)
class Meeting:
    """One collective on all ranks. Arrays have shape (ranks,); groups meet independently.

    ``last_ns`` is the last arrival in the rank's own group, ``end_ns`` = ``last_ns`` + ``transfer_ns``.
    """

    label: str
    phase: str
    step: int
    sequence: int
    payload: Payload
    arrival_ns: Int64
    last_ns: Int64
    transfer_ns: Int64
    end_ns: Int64


@dataclass(frozen=True, slots=True)
class Costs:
    """Times that every operation shares, ns."""

    launch_ns: int
    collective_ns: int
    launch_latency_ns: int
    queue_depth: int
    slowdown: float


@dataclass
class Machine:
    """State of all ranks, and what they did.

    Attributes:
        host_ns: When each rank's host is free.
        rows: Every event, in program order.
        collectives: Every collective, in program order.
        step: Number of the step that is being issued; rows are recorded while it is not None.

    """

    ranks: int
    costs: Costs
    noise: Callable[[str, int], NDArray[np.float64]]
    host_ns: Int64 = field(init=False)
    rows: list[Row] = field(default_factory=list)
    collectives: list[Meeting] = field(default_factory=list)
    step: int = 0
    phase: str = "other"
    thread: str = MAIN

    def __post_init__(self) -> None:
        self.host_ns = np.zeros(self.ranks, dtype=np.int64)
        self._streams: dict[int, Int64] = {}
        self._queue: deque[Int64] = deque()
        self._transfers: list[tuple[Int64, Int64]] = []
        self._ids = 0
        self._sequence: dict[str, int] = {}

    # ---- host -------------------------------------------------------------------------------------------

    def busy(self, duration_ns: int | Int64) -> None:
        """The host works without any event."""
        self.host_ns = self.host_ns + duration_ns

    def until(self, moment_ns: Int64) -> None:
        """The host stands still until a moment."""
        self.host_ns = np.maximum(self.host_ns, moment_ns)

    @contextmanager
    def span(self, name: str, kind: Kind = "annotation") -> Iterator[None]:
        """An annotation (or operator) around what the host does meanwhile; recorded before that."""
        begin, position, thread = self.host_ns, len(self.rows), self.thread
        identity = self._next_id()
        yield
        row = Row(
            kind, name, thread, begin, self.host_ns - begin, self.step, external_id=identity,
            encloses=len(self.rows) - position,
        )  # fmt: skip
        self.rows.insert(position, row)

    @contextmanager
    def on_thread(self, thread: str) -> Iterator[None]:
        """Issue from another thread; the one before stands still meanwhile."""
        before, self.thread = self.thread, thread
        yield
        self.thread = before

    @contextmanager
    def in_phase(self, phase: str) -> Iterator[None]:
        """Name the phase of the collectives issued meanwhile."""
        before, self.phase = self.phase, phase
        yield
        self.phase = before

    def call(self, name: str, duration_ns: int) -> None:
        """A runtime call that launches nothing."""
        self._row(
            "runtime", name, self.thread, self.host_ns, np.full(self.ranks, duration_ns), self._next_id()
        )
        self.busy(duration_ns)

    def forget(self) -> None:
        """Start the capture here: drop what was recorded, with all ranks idle and at the same moment."""
        latest = max([int(self.host_ns.max()), *(int(end.max()) for end in self._streams.values())])
        self.host_ns = np.full(self.ranks, latest, dtype=np.int64)
        self.rows.clear()
        self.collectives.clear()
        self._queue.clear()
        self._transfers.clear()

    def synchronise(self, stream: int) -> None:
        """cudaStreamSynchronize: the host waits for everything on the stream."""
        begin = self.host_ns
        self.until(self.stream_ns(stream))
        self.busy(_SYNC_RETURN_NS)
        self._row(
            "runtime", "cudaStreamSynchronize", self.thread, begin, self.host_ns - begin, self._next_id()
        )

    # ---- device -----------------------------------------------------------------------------------------

    def stream_ns(self, stream: int) -> Int64:
        """When a stream has run everything issued to it so far."""
        if stream not in self._streams:
            self._streams[stream] = np.zeros(self.ranks, dtype=np.int64)
        return self._streams[stream]

    def wait(self, stream: int, moment_ns: Int64) -> None:
        """cudaStreamWaitEvent: later work on the stream starts after a moment (the end of other work)."""
        self.call("cudaStreamWaitEvent", _CALL_NS)
        self._streams[stream] = np.maximum(self.stream_ns(stream), moment_ns)

    def kernel(
        self,
        operator: str,
        name: str,
        stream: int,
        work_ns: float | NDArray[np.float64],
        *,
        label: str = "",
    ) -> Int64:
        """An operator that launches one kernel; returns its ends. ``label`` keys the jitter."""
        noisy = np.rint(np.asarray(work_ns, dtype=np.float64) * self.noise(label or name, self.step))
        work = np.broadcast_to(noisy.astype(np.int64), (self.ranks,))
        launch, identity = self._launch(operator, "cudaLaunchKernel", self.costs.launch_ns)
        start = np.maximum(launch + self.costs.launch_latency_ns, self.stream_ns(stream))
        end = self._stretched(start, work)
        self._occupy(stream, end)
        self._row("kernel", name, stream, start, end - start, identity, external_id=identity)
        return end

    def copy(self, name: str, stream: int, size_bytes: Int64, work_ns: Int64) -> Int64:
        """cudaMemcpyAsync; returns its ends."""
        launch, identity = self._launch("aten::copy_", "cudaMemcpyAsync", self.costs.launch_ns)
        start = np.maximum(launch + self.costs.launch_latency_ns, self.stream_ns(stream))
        self._occupy(stream, start + work_ns)
        self.rows.append(
            Row("memcpy", name, stream, start, work_ns, self.step, identity, identity, size_bytes=size_bytes)
        )
        return start + work_ns

    def collective(
        self,
        label: str,
        name: str,
        stream: int,
        payload: Payload,
        transfer_ns: Sequence[float],
        ready_ns: Int64 | None = None,
    ) -> Meeting:
        """A collective of every group of ``payload.members``; ``transfer_ns`` has one entry per group.

        It starts on a rank when its stream reaches it and its input is ready; it ends on all members at the
        last start plus the transfer.
        """
        self.call("cudaEventRecord", _CALL_NS)
        self.wait(stream, self.stream_ns(stream) if ready_ns is None else ready_ns)
        index = len(self.collectives)
        host_ns = max(self.costs.collective_ns - 2 * _CALL_NS, _CALL_NS)
        launch, identity = self._launch("record_param_comms", "cudaLaunchKernelExC", host_ns, index)
        arrival = np.maximum(launch + self.costs.launch_latency_ns, self.stream_ns(stream))
        last, transfer = np.empty_like(arrival), np.empty_like(arrival)
        wobble = self.noise(f"{label}:{payload.operation}", self.step)
        for members, duration in zip(payload.members, transfer_ns, strict=True):
            ranks = list(members)
            last[ranks] = arrival[ranks].max()
            transfer[ranks] = max(1, round(duration * float(wobble[ranks[0]])))
        end = last + transfer
        self._occupy(stream, end)
        self._transfers.append((last, end))
        group = payload.group_names[0]
        sequence = self._sequence[group] = self._sequence.get(group, 0) + 1
        meeting = Meeting(label, self.phase, self.step, sequence, payload, arrival, last, transfer, end)
        self.collectives.append(meeting)
        self.rows.append(
            Row(
                "kernel",
                name,
                stream,
                arrival,
                end - arrival,
                self.step,
                identity,
                identity,
                collective=index,
            )
        )
        return meeting

    # ---- inside -----------------------------------------------------------------------------------------

    def _next_id(self) -> int:
        self._ids += 1
        return self._ids

    def _row(
        self,
        kind: Kind,
        name: str,
        lane: str | int,
        start_ns: Int64,
        dur_ns: Int64,
        correlation: int,
        external_id: int = 0,
    ) -> None:
        self.rows.append(Row(kind, name, lane, start_ns, dur_ns, self.step, correlation, external_id))

    def _launch(
        self, operator: str, call: str, host_ns: int, collective: int | None = None
    ) -> tuple[Int64, int]:
        """An operator around a launch call, which blocks while the queue is full.

        Returns the moment from which the device knows of it, and its id.
        """
        identity = self._next_id()
        begin = self.host_ns
        inside = int(host_ns * _RUNTIME_SHARE)
        called = begin + (host_ns - inside)
        known = called
        if len(self._queue) >= self.costs.queue_depth:
            known = np.maximum(called, self._queue.popleft())
        self.host_ns = known + inside
        self.rows.append(
            Row(
                "cpu_op",
                operator,
                self.thread,
                begin,
                self.host_ns - begin,
                self.step,
                external_id=identity,
                collective=collective,
            )
        )
        self._row("runtime", call, self.thread, called, self.host_ns - called, identity, external_id=identity)
        return known, identity

    def _occupy(self, stream: int, end_ns: Int64) -> None:
        self._streams[stream] = end_ns
        self._queue.append(end_ns)

    def _stretched(self, start_ns: Int64, work_ns: Int64) -> Int64:
        """The end of compute that runs at 1/(1 + slowdown) while a collective issued before transfers.

        Transfers are taken in order of issue; a moment under two of them is slowed by both.
        """
        end = start_ns + work_ns
        self._transfers = [(a, b) for a, b in self._transfers if bool((b > self.host_ns).any())]
        if self.costs.slowdown == 0 or not self._transfers:
            return end
        extra = 1 + self.costs.slowdown
        for begin, until in self._transfers:
            # Work left when the transfer begins takes `extra` times as long, until the transfer ends.
            begin_at = np.maximum(begin, start_ns)
            beside = np.minimum(end - begin_at, (until - begin_at) / extra)
            if (beside > 0).any():
                end = end + np.rint(np.maximum(beside, 0) * self.costs.slowdown).astype(np.int64)
        return end
