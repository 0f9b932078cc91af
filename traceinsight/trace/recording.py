"""One rank's trace as columns: the contract between reading (or simulating) and everything above.

Times are int64 nanoseconds on the rank's own clock. Arrays are read-only. Nothing in here is derived:
steps, launches and collectives follow from a recording in the other modules of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traceinsight.base.notes import DataNote

Int64 = NDArray[np.int64]
Int32 = NDArray[np.int32]
Int8 = NDArray[np.int8]

MISSING = -1
"""Stands for "not recorded" in the integer columns that allow it (correlation, size, launch, ...)."""


class EventKind(IntEnum):
    """What a trace event is, independent of the profiler version that wrote it."""

    CPU_OP = 0  # aten::*, autograd, custom operators
    ANNOTATION = 1  # record_function on the CPU: ProfilerStep#N, "## forward ##", "nccl:all_reduce"
    RUNTIME = 2  # CUDA/HIP runtime and driver calls
    KERNEL = 3  # GPU kernels
    MEMCPY = 4  # GPU copies
    MEMSET = 5
    GPU_ANNOTATION = 6  # record_function mirrored on a GPU stream
    PYTHON = 7  # python_function of with_stack / with_modules
    OVERHEAD = 8  # the profiler's own overhead
    OTHER = 9


GPU_WORK = (EventKind.KERNEL, EventKind.MEMCPY, EventKind.MEMSET)
"""The kinds that occupy a GPU stream."""


@dataclass(frozen=True, slots=True)
class Lane:
    """A row of the timeline: a CPU thread, or one stream of one GPU."""

    pid: str
    tid: str
    name: str = ""  # thread name from the metadata events, where there is one
    device: int | None = None  # GPU ordinal; None for a CPU thread
    stream: int | None = None  # None for a CPU thread


@dataclass(frozen=True, slots=True)
class EventTable:
    """Duration events, sorted by (start_ns, -dur_ns, lane, name): the order of the file never matters.

    All arrays have shape (n_events,).

    Attributes:
        start_ns: Start on the rank's clock.
        dur_ns: Duration, >= 0.
        name: Index into :attr:`Recording.strings`.
        kind: :class:`EventKind`.
        lane: Index into :attr:`Recording.lanes`.
        correlation: Links a GPU event to the runtime call that launched it; ``MISSING`` if not recorded.
        external_id: Links a GPU event or runtime call to the CPU operator that issued it; ``MISSING`` too.
        size_bytes: Bytes copied or set by a memcpy/memset; ``MISSING`` otherwise.

    """

    start_ns: Int64
    dur_ns: Int64
    name: Int32
    kind: Int8
    lane: Int32
    correlation: Int64
    external_id: Int64
    size_bytes: Int64

    def __post_init__(self) -> None:
        for column in fields(self):
            getattr(self, column.name).flags.writeable = False

    def __reduce__(self) -> tuple[type[EventTable], tuple[Any, ...]]:
        """Unpickle through the constructor, which makes the arrays read-only again."""
        return EventTable, tuple(getattr(self, column.name) for column in fields(self))

    def __len__(self) -> int:
        """Number of events."""
        return len(self.start_ns)

    @property
    def end_ns(self) -> Int64:
        """start_ns + dur_ns, shape (n_events,)."""
        return self.start_ns + self.dur_ns


@dataclass(frozen=True, slots=True)
class CommArgs:
    """The collective arguments PyTorch attaches to a communication event; None where absent.

    On NCCL/RCCL kernels and ``record_param_comms`` operators: "Collective name", "In msg nelems",
    "Process Group Ranks", ... On ``nccl:*`` / ``gloo:*`` annotations: only the input dims and type.
    """

    collective: str | None = None
    in_elements: int | None = None
    out_elements: int | None = None
    dtype: str | None = None  # as written: "Float", "BFloat16", "Byte", ...; annotations: "float", "long int"
    in_split: tuple[int, ...] | None = None
    out_split: tuple[int, ...] | None = None
    group_name: str | None = None
    group_description: str | None = None
    group_ranks: tuple[int, ...] | None = None
    group_size: int | None = None
    sequence: int | None = None
    peer_src: int | None = None
    peer_dst: int | None = None


@dataclass(frozen=True, slots=True)
class StreamWait:
    """A "Stream Wait Event": ``stream`` waits for what was in ``waited_stream`` when an event was recorded.

    ``record`` is the correlation of the call that recorded it.
    """

    stream: int
    waited_stream: int
    record: int


@dataclass(frozen=True, slots=True)
class Device:
    """One entry of ``deviceProperties``."""

    ordinal: int
    name: str
    memory_bytes: int | None = None
    sm_count: int | None = None


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """One entry of ``distributedInfo.pg_config``."""

    name: str
    description: str | None
    ranks: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Recording:
    """Everything one file said about one rank.

    Attributes:
        file: Where it came from, as the user named it.
        rank: Global rank, or None when nothing in file or name tells it.
        rank_source: ``distributedInfo``, ``collective-arguments``, ``file-name``, ``rank-regex`` or ``none``.
        world_size: Number of ranks of the job, or None.
        backend: ``nccl``, ``gloo``, ... or None.
        host: Host name, or None.
        devices: GPUs of the host, by ordinal; empty if the file names none.
        process_groups: As configured, empty if not recorded.
        strings: Sorted, unique; events refer to it by index.
        lanes: Sorted by (pid, tid); events refer to it by index.
        events: The duration events.
        comm_args: Collective arguments by event index; only events that carry some.
        metadata: Other scalar top-level fields of the file (versions, trace id, flags), as strings.
        notes: What was odd about the file.
        stream_waits: What streams wait for, by correlation of the call; empty unless CUDA's synchronisation
            events were recorded.

    """

    file: str
    rank: int | None
    rank_source: str
    world_size: int | None
    backend: str | None
    host: str | None
    devices: tuple[Device, ...]
    process_groups: tuple[ProcessGroup, ...]
    strings: tuple[str, ...]
    lanes: tuple[Lane, ...]
    events: EventTable
    comm_args: Mapping[int, CommArgs]
    metadata: Mapping[str, str]
    notes: tuple[DataNote, ...]
    stream_waits: Mapping[int, StreamWait] = field(default_factory=dict)
    _cache: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    def of_kind(self, *kinds: EventKind) -> Int64:
        """Indices of the events of these kinds, ascending in time."""
        key = "kind:" + ",".join(str(int(kind)) for kind in kinds)
        if key not in self._cache:
            self._cache[key] = np.flatnonzero(np.isin(self.events.kind, kinds))
        return self._cache[key]  # type: ignore[no-any-return]

    def named(self, events: Int64, wanted: Callable[[str], bool]) -> Int64:
        """Those of the given events whose name is wanted; each distinct name is asked about once."""
        names = self.events.name[events]
        keep = np.zeros(len(self.strings), dtype=np.bool_)
        for name in np.unique(names).tolist():
            keep[name] = wanted(self.strings[name])
        return events[keep[names]]

    def name_of(self, event: int) -> str:
        """The name of one event."""
        return self.strings[int(self.events.name[event])]

    @property
    def has_gpu_work(self) -> bool:
        """Whether any kernel, copy or memset was recorded."""
        return len(self.of_kind(*GPU_WORK)) > 0
