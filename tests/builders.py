"""Kineto traces of a TorchRec-like job whose every number is known by arithmetic.

``JobBuilder`` simulates N ranks on one true clock, with the three rules that make such a job what it is:

- work starts when its launch has reached the device, its stream is free and what it depends on is done;
- a collective starts on a rank when that rank gets there, and ends for all at last arrival + transfer;
- the host runs ahead of the device, up to the end of backward of its own step.

One step of the default job, on the device (``gap`` = 1 us before every piece of work)::

    copy 20 us | kjt a2a 30 us | forward 2 ms | pooled a2a 100 us | forward 2 ms
    | backward 3 ms | gradient a2a 100 us | backward 3 ms (all-reduce 500 us beside it) | optimizer 2 ms

so a steady step takes 20 + 30 + 2000 + 100 + 2000 + 3000 + 100 + 3000 + 2000 + 9 gaps = 12 259 us.
"""

import gzip
import json
import random
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.oracles import union_length

US = 1_000
MS = 1_000_000

COMPUTE_STREAM, COMM_STREAM = 7, 20
MAIN_THREAD, BACKWARD_THREAD, GLOO_THREAD = 1000, 1001, 1002
LAUNCH_NS = 5 * US  # length of a launching runtime call
LAUNCH_LATENCY_NS = 3 * US  # from the end of the call to the earliest start on the device
SYNC_RETURN_NS = 2 * US
STEP_EPILOGUE_NS = 1 * US
BASE_NS = 1_759_300_074_000_000_000
ELEMENT_BYTES = {"Float": 4, "Half": 2, "BFloat16": 2, "Byte": 1}

KERNEL_NAMES = {
    "forward": "ampere_sgemm_128x64_tn",
    "backward": "ampere_sgemm_128x64_nt",
    "optimizer": "void at::native::vectorized_elementwise_kernel<4, AdagradFunctor<float>>",
    "late": "split_embedding_codegen_forward_unweighted_kernel<float, float, float, int>",
}
NCCL_NAMES = {
    "all_to_allv": "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
    "allreduce": "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "_allgather_base": "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "_reduce_scatter_base": "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
}
HOST_NAMES = {
    "all_to_allv": "nccl:all_to_all",
    "allreduce": "nccl:all_reduce",
    "_allgather_base": "nccl:_all_gather_base",
    "_reduce_scatter_base": "nccl:_reduce_scatter_base",
}


@dataclass(frozen=True)
class CollectiveSpec:
    """One collective of every step. ``elements`` is what a rank puts in; ``per_rank`` overrides it."""

    op: str
    phase: str  # sparse_data_dist, forward or backward
    transfer_ns: int
    elements: int
    label: str
    overlapped: bool = False  # nothing waits for it before the optimizer
    dtype: str = "Float"
    per_rank: tuple[int, ...] | None = None

    def elements_of(self, rank: int) -> int:
        return self.per_rank[rank] if self.per_rank else self.elements


KJT_A2A = CollectiveSpec("all_to_allv", "sparse_data_dist", 30 * US, 4_096, "## all2all_data:kjt values ##")
POOLED_A2A = CollectiveSpec("all_to_allv", "forward", 100 * US, 1_000_000, "## alltoall_fwd_single ##")
GRADIENT_A2A = CollectiveSpec("all_to_allv", "backward", 100 * US, 1_000_000, "## alltoall_bwd_single ##")
DENSE_ALLREDUCE = CollectiveSpec("allreduce", "backward", 500 * US, 2_000_000, "", overlapped=True)
DEFAULT_COLLECTIVES = (KJT_A2A, POOLED_A2A, GRADIENT_A2A, DENSE_ALLREDUCE)


@dataclass(frozen=True)
class Late:
    """Extra own lookup work of ``ns`` on ``rank`` right before each collective of these operations."""

    rank: int
    ns: int
    ops: tuple[str, ...] = ("all_to_allv",)
    steps: tuple[int, ...] | None = None  # positions 0, 1, ...; None is all
    phases: tuple[str, ...] = ("sparse_data_dist", "forward", "backward")

    def delay(self, rank: int, position: int, spec: CollectiveSpec) -> int:
        hit = rank == self.rank and spec.op in self.ops and spec.phase in self.phases
        return self.ns if hit and (self.steps is None or position in self.steps) else 0


@dataclass(frozen=True)
class DeviceWork:
    """One piece of work on a device stream, on the true clock."""

    step: int
    phase: str
    kind: str  # compute, comm, copy
    name: str
    start: int
    end: int
    stream: int
    launch: int
    thread: int
    correlation: int
    collective: int | None = None  # index into Job.collectives


@dataclass(frozen=True)
class HostEvent:
    """One event on a host thread, on the true clock."""

    category: str
    name: str
    start: int
    end: int
    thread: int
    args: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class CollectiveTruth:
    """What really happened in one collective."""

    spec: CollectiveSpec
    step: int
    starts: dict[int, int]
    end: int

    @property
    def last_arrival(self) -> int:
        return max(self.starts.values())

    def wait(self, rank: int) -> int:
        return self.last_arrival - self.starts[rank]


@dataclass
class _Rank:
    """Mutable state of one rank while the job is simulated."""

    host: int
    device: list[DeviceWork] = field(default_factory=list)
    events: list[HostEvent] = field(default_factory=list)
    stream_free: dict[int, int] = field(default_factory=dict)
    compute_waits_for: int = 0
    correlation: int = 100

    @contextmanager
    def annotation(self, name: str, thread: int = MAIN_THREAD) -> Iterator[None]:
        start = self.host
        self.host += US
        yield
        self.host += US
        self.events.append(HostEvent("user_annotation", name, start, self.host, thread))

    def drained_at(self) -> int:
        return max(self.stream_free.values(), default=0)


@dataclass(frozen=True)
class JobBuilder:
    """The knobs. Every length is in nanoseconds; the defaults make a healthy, device-bound job."""

    world_size: int = 4
    steps: int = 4
    first_step: int = 10
    forward_ns: tuple[int, ...] = (2 * MS, 2 * MS)  # the forward collectives come after the first
    backward_ns: tuple[int, ...] = (3 * MS, 3 * MS)  # the backward collectives come after the first
    optimizer_ns: int = 2 * MS
    pieces: int = 1  # kernels that each of the above is cut into
    copy_ns: int = 20 * US
    collectives: tuple[CollectiveSpec, ...] = DEFAULT_COLLECTIVES
    loader_ns: int = 100 * US
    input_delay_ns: Mapping[int, int] = field(default_factory=dict)  # extra loader time per rank
    host_op_ns: int = 5 * US  # host time before each launch
    sync_stall_ns: int | None = None  # a stream sync after forward that returns so long after the drain
    kernel_gap_ns: int = 1 * US
    late: tuple[Late, ...] = ()
    clock_ahead_ns: Mapping[int, int] = field(default_factory=dict)
    jitter_ns: int = 0  # each compute kernel grows by 0..jitter, seeded
    seed: int = 0
    slow_steps: Mapping[int, float] = field(default_factory=dict)  # position -> factor on compute
    missing_kernels: frozenset[tuple[int, int, int]] = frozenset()  # (rank, position, nth of the step)
    arguments: bool = True
    profiler_step: bool = True
    gpu: bool = True

    def build(self) -> "Job":
        """Simulate the job."""
        return _Simulation(self).run()


class _Simulation:
    """Runs all ranks operation by operation in lockstep; legal because all run the same program."""

    def __init__(self, knobs: JobBuilder) -> None:
        self.knobs = knobs
        self.ranks = [_Rank(host=10 * MS) for _ in range(knobs.world_size)]
        self.collectives: list[CollectiveTruth] = []
        self.random = random.Random(knobs.seed)
        self.position = 0

    @property
    def step(self) -> int:
        return self.knobs.first_step + self.position

    def run(self) -> "Job":
        for position in range(self.knobs.steps):
            self.position = position
            starts = [rank.host for rank in self.ranks]
            if self.knobs.gpu:
                self._gpu_step()
            else:
                self._cpu_step()
            self._close_step(starts)
        return Job(
            self.knobs,
            {r: rank.device for r, rank in enumerate(self.ranks)},
            {r: rank.events for r, rank in enumerate(self.ranks)},
            self.collectives,
        )

    def _close_step(self, starts: list[int]) -> None:
        for rank, start in zip(self.ranks, starts, strict=True):
            if self.knobs.profiler_step:
                name = f"ProfilerStep#{self.step}"
                rank.events.append(HostEvent("user_annotation", name, start, rank.host, MAIN_THREAD))
            rank.host += STEP_EPILOGUE_NS

    # A step with a GPU ---------------------------------------------------------------------------

    def _gpu_step(self) -> None:
        for index, rank in enumerate(self.ranks):
            self._load(index, rank)
            with rank.annotation("## copy_batch_to_gpu ##"):
                self._launch(rank, "input", "copy", "Memcpy HtoD (Pinned -> Device)", self.knobs.copy_ns)
        self._phase("sparse_data_dist", "## sparse_data_dist ##", ())
        self._phase("forward", "## forward ##", self.knobs.forward_ns)
        if self.knobs.sync_stall_ns is not None:
            for rank in self.ranks:
                self._synchronise(rank, rank.drained_at() + self.knobs.sync_stall_ns, "cudaStreamSynchronize")
        self._phase("backward", "## backward ##", self.knobs.backward_ns)
        backward_ends = [rank.drained_at() for rank in self.ranks]
        self._optimizer()
        for rank, end in zip(self.ranks, backward_ends, strict=True):
            self._synchronise(rank, end + SYNC_RETURN_NS, "cudaEventSynchronize")

    def _load(self, index: int, rank: _Rank) -> None:
        start = rank.host
        rank.host += self.knobs.loader_ns + self.knobs.input_delay_ns.get(index, 0)
        name = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
        rank.events.append(HostEvent("user_annotation", name, start, rank.host, MAIN_THREAD))

    def _phase(self, phase: str, annotation: str, parts: tuple[int, ...]) -> None:
        """All ranks go through one phase: first part, its collectives, the other parts."""
        thread = BACKWARD_THREAD if phase == "backward" else MAIN_THREAD
        starts = [rank.host for rank in self.ranks]
        for rank in self.ranks:
            rank.host += US
        for part in parts[:1]:
            self._compute(phase, part, thread)
        for spec in self.knobs.collectives:
            if spec.phase == phase:
                self._collective(spec, thread)
        for part in parts[1:]:
            self._compute(phase, part, thread)
        for rank, start in zip(self.ranks, starts, strict=True):
            rank.host += US
            rank.events.append(HostEvent("user_annotation", annotation, start, rank.host, MAIN_THREAD))

    def _compute(self, phase: str, total_ns: int, thread: int = MAIN_THREAD) -> None:
        piece = round(total_ns * self.knobs.slow_steps.get(self.position, 1.0)) // self.knobs.pieces
        for rank in self.ranks:
            for _ in range(self.knobs.pieces):
                length = piece + self.random.randint(0, self.knobs.jitter_ns)
                self._launch(rank, phase, "compute", KERNEL_NAMES[phase], length, thread)

    def _optimizer(self) -> None:
        for rank in self.ranks:  # the update needs the gradients of the overlapped collectives
            rank.compute_waits_for = max(rank.compute_waits_for, rank.stream_free.get(COMM_STREAM, 0))
        starts = [rank.host for rank in self.ranks]
        self._compute("optimizer", self.knobs.optimizer_ns)
        for rank, start in zip(self.ranks, starts, strict=True):
            inner = HostEvent("user_annotation", "Optimizer.step#Adagrad.step", start, rank.host, MAIN_THREAD)
            outer = HostEvent("user_annotation", "## optimizer ##", start, rank.host + US, MAIN_THREAD)
            rank.events += [inner, outer]
            rank.host += US

    def _host_launch(self, rank: _Rank, operator: str, runtime: str, thread: int) -> tuple[int, int]:
        """Host side of a launch: (start of the runtime call, correlation)."""
        start = rank.host
        rank.host += self.knobs.host_op_ns
        call, rank.correlation = rank.host, rank.correlation + 1
        rank.host += LAUNCH_NS
        args = {"correlation": rank.correlation, "External id": rank.correlation}
        rank.events.append(HostEvent("cuda_runtime", runtime, call, rank.host, thread, args))
        rank.host += US
        args = {"External id": rank.correlation}
        rank.events.append(HostEvent("cpu_op", operator, start, rank.host, thread, args))
        return call, rank.correlation

    def _launch(
        self, rank: _Rank, phase: str, kind: str, name: str, length: int, thread: int = MAIN_THREAD
    ) -> None:
        """One kernel or copy on the compute stream."""
        backward = thread == BACKWARD_THREAD
        operator = "autograd::engine::evaluate_function: AddmmBackward0" if backward else "aten::addmm"
        if kind == "copy":
            call, correlation = self._host_launch(rank, "aten::copy_", "cudaMemcpyAsync", thread)
        else:
            call, correlation = self._host_launch(rank, operator, "cudaLaunchKernel", thread)
        ready = max(rank.stream_free.get(COMPUTE_STREAM, 0), rank.compute_waits_for)
        start = max(call + LAUNCH_NS + LAUNCH_LATENCY_NS, ready + self.knobs.kernel_gap_ns)
        rank.stream_free[COMPUTE_STREAM] = start + length
        work = DeviceWork(
            self.step, phase, kind, name, start, start + length, COMPUTE_STREAM, call, thread, correlation
        )
        rank.device.append(work)

    def _collective(self, spec: CollectiveSpec, thread: int) -> None:
        """Launch on all ranks, let the last one set the end."""
        arrivals: dict[int, tuple[int, int, int]] = {}
        for index, rank in enumerate(self.ranks):
            delay = sum(late.delay(index, self.position, spec) for late in self.knobs.late)
            if delay:
                self._launch(rank, spec.phase, "compute", KERNEL_NAMES["late"], delay, thread)
            arrivals[index] = self._arrive(rank, spec, thread)
        starts = {index: arrival[0] for index, arrival in arrivals.items()}
        end = max(starts.values()) + spec.transfer_ns
        self.collectives.append(CollectiveTruth(spec, self.step, starts, end))
        for index, rank in enumerate(self.ranks):
            start, call, correlation = arrivals[index]
            rank.stream_free[COMM_STREAM] = end
            if not spec.overlapped:
                rank.compute_waits_for = end
            work = DeviceWork(
                self.step, spec.phase, "comm", NCCL_NAMES[spec.op], start, end, COMM_STREAM, call, thread,
                correlation, len(self.collectives) - 1,
            )  # fmt: skip
            rank.device.append(work)

    def _arrive(self, rank: _Rank, spec: CollectiveSpec, thread: int) -> tuple[int, int, int]:
        """(start on the device, launch, correlation) of the collective on one rank."""
        start = rank.host
        call, correlation = self._host_launch(rank, HOST_NAMES[spec.op], "cudaLaunchKernelExC", thread)
        if spec.label:
            rank.host += US
            rank.events.append(HostEvent("user_annotation", spec.label, start, rank.host, thread))
        ready = max(rank.stream_free.get(COMM_STREAM, 0), rank.stream_free.get(COMPUTE_STREAM, 0))
        reached = max(call + LAUNCH_NS + LAUNCH_LATENCY_NS, ready + self.knobs.kernel_gap_ns)
        return reached, call, correlation

    def _synchronise(self, rank: _Rank, until: int, call: str) -> None:
        start, rank.correlation = rank.host, rank.correlation + 1
        rank.host = max(rank.host + US, until)
        args = {"correlation": rank.correlation, "External id": rank.correlation}
        rank.events.append(HostEvent("cuda_runtime", call, start, rank.host, MAIN_THREAD, args))

    # A step on CPU over gloo -----------------------------------------------------------------------

    def _cpu_step(self) -> None:
        for index, rank in enumerate(self.ranks):
            self._load(index, rank)
        self._cpu_phase("sparse_data_dist", "## sparse_data_dist ##", ())
        self._cpu_phase("forward", "## forward ##", self.knobs.forward_ns)
        self._cpu_phase("backward", "## backward ##", self.knobs.backward_ns)
        self._cpu_phase("optimizer", "## optimizer ##", (self.knobs.optimizer_ns,))

    def _cpu_phase(self, phase: str, annotation: str, parts: tuple[int, ...]) -> None:
        starts = [rank.host for rank in self.ranks]
        for part in parts[:1]:
            self._cpu_compute(part)
        for spec in self.knobs.collectives:
            if spec.phase == phase:
                self._gloo(spec)
        for part in parts[1:]:
            self._cpu_compute(part)
        for rank, start in zip(self.ranks, starts, strict=True):
            rank.events.append(HostEvent("user_annotation", annotation, start, rank.host, MAIN_THREAD))

    def _cpu_compute(self, total_ns: int) -> None:
        length = round(total_ns * self.knobs.slow_steps.get(self.position, 1.0))
        for rank in self.ranks:
            self._cpu_operator(rank, "aten::addmm", length + self.random.randint(0, self.knobs.jitter_ns))

    def _cpu_operator(self, rank: _Rank, name: str, length: int) -> None:
        rank.events.append(HostEvent("cpu_op", name, rank.host, rank.host + length, MAIN_THREAD))
        rank.host += length

    def _gloo(self, spec: CollectiveSpec) -> None:
        """The main thread hands over and waits; gloo's own thread carries the annotation."""
        starts = {}
        names = {"all_to_allv": ("c10d::alltoall_base_", "gloo:all_to_all")}
        operator, annotation = names.get(spec.op, ("c10d::allreduce_", "gloo:all_reduce"))
        for index, rank in enumerate(self.ranks):
            delay = sum(late.delay(index, self.position, spec) for late in self.knobs.late)
            if delay:
                self._cpu_operator(rank, "fbgemm::split_embedding_codegen_lookup_adagrad_function", delay)
            call = rank.host
            self._cpu_operator(rank, operator, 5 * US)
            if spec.label:
                rank.events.append(HostEvent("user_annotation", spec.label, call, rank.host, MAIN_THREAD))
            starts[index] = rank.host
        end = max(starts.values()) + spec.transfer_ns
        self.collectives.append(CollectiveTruth(spec, self.step, starts, end))
        for index, rank in enumerate(self.ranks):
            rank.events.append(HostEvent("user_annotation", annotation, starts[index], end, GLOO_THREAD))
            name = "## Request wait() ##"
            rank.events.append(HostEvent("user_annotation", name, rank.host, end, MAIN_THREAD))
            rank.host = end


@dataclass(frozen=True)
class Job:
    """The simulated job: its truth, and its files."""

    knobs: JobBuilder
    device: dict[int, list[DeviceWork]]
    host: dict[int, list[HostEvent]]
    collectives: list[CollectiveTruth]

    @property
    def steps(self) -> list[int]:
        return [self.knobs.first_step + position for position in range(self.knobs.steps)]

    @property
    def closed_steps(self) -> list[int]:
        """Steps whose device window is closed by a next step."""
        return self.steps[:-1]

    def window(self, rank: int, step: int) -> tuple[int, int]:
        """First device work of the step to first of the next (true clock)."""
        first = {}
        for work in self.device[rank]:
            first[work.step] = min(work.start, first.get(work.step, work.start))
        return first[step], first[step + 1]

    def partition(self, rank: int, step: int) -> dict[str, int]:
        """Truth of the six parts, from the simulated intervals."""
        window = self.window(rank, step)
        spans: dict[str, list[tuple[int, int]]] = {"compute": [], "wait": [], "transfer": [], "copy": []}
        for work in self.device[rank]:
            for kind, span in self._split(work):
                spans[kind].append((max(span[0], window[0]), min(span[1], window[1])))
        hidden: list[tuple[int, int]] = []
        parts = {}
        for kind in ("compute", "transfer", "wait", "copy"):
            inside = [s for s in spans[kind] if s[0] < s[1]]
            parts[kind] = union_length(hidden + inside) - union_length(hidden)
            hidden += inside
        return parts | {"idle": window[1] - window[0] - union_length(hidden), "window": window[1] - window[0]}

    def forward(self, rank: int, step: int) -> tuple[int, int]:
        """(span of the work launched by forward, communication in it)."""
        work = [w for w in self.device[rank] if w.step == step and w.phase == "forward"]
        span = max(w.end for w in work) - min(w.start for w in work)
        return span, union_length((w.start, w.end) for w in work if w.kind == "comm")

    def _split(self, work: DeviceWork) -> Iterator[tuple[str, tuple[int, int]]]:
        if work.collective is None:
            yield work.kind, (work.start, work.end)
            return
        last = self.collectives[work.collective].last_arrival
        yield "wait", (work.start, last)
        yield "transfer", (last, work.end)

    # Files -----------------------------------------------------------------------------------------

    def document(self, rank: int) -> dict[str, Any]:
        """The trace of one rank, as Kineto writes it."""
        events = self._metadata(rank)
        events += [self._host_json(rank, event) for event in self.host[rank]]
        seen: dict[int, int] = {}
        for work in self.device[rank]:
            nth = seen.get(work.step, 0)
            if work.collective is not None:
                seen[work.step] = nth + 1
                position = work.step - self.knobs.first_step
                if (rank, position, nth) in self.knobs.missing_kernels:
                    continue
            events += self._device_json(rank, work)
        world = list(range(self.knobs.world_size))
        backend = "nccl" if self.knobs.gpu else "gloo"
        group = {"pg_name": "0", "pg_desc": "default_pg", "backend_config": f"cuda:{backend}", "ranks": world}
        devices = [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "totalGlobalMem": 85_000_000_000}]
        return {
            "schemaVersion": 1,
            "deviceProperties": devices if self.knobs.gpu else [],
            "distributedInfo": {
                "backend": backend,
                "rank": rank,
                "world_size": self.knobs.world_size,
                "pg_count": 1,
                "pg_config": [group | {"pg_size": self.knobs.world_size}],
            },
            "displayTimeUnit": "ms",
            "baseTimeNanoseconds": BASE_NS,
            "traceEvents": events,
            "traceName": f"rank{rank}.pt.trace.json",
        }

    def text(self, rank: int) -> str:
        return json.dumps(self.document(rank))

    def write(self, folder: Path, ranks: Iterable[int] | None = None) -> Path:
        """One gzipped file per rank, or of some ranks only."""
        folder.mkdir(parents=True, exist_ok=True)
        for rank in range(self.knobs.world_size) if ranks is None else ranks:
            packed = gzip.compress(self.text(rank).encode(), compresslevel=1, mtime=0)
            (folder / file_name(rank)).write_bytes(packed)
        return folder

    def _stamp(self, rank: int, time: int) -> float:
        """Microseconds after the base, as the rank's own clock shows it. Small: exact to the nanosecond."""
        return (time + self.knobs.clock_ahead_ns.get(rank, 0)) / 1000

    def _metadata(self, rank: int) -> list[dict[str, Any]]:
        at = self._stamp(rank, 0)
        pid = self._pid(rank)
        names = [(pid, "python3"), (0, "python3")]
        return [
            {"name": "process_name", "ph": "M", "ts": at, "pid": p, "tid": 0, "args": {"name": name}}
            for p, name in names
        ]

    @staticmethod
    def _pid(rank: int) -> int:
        return 59_811 + rank

    def _host_json(self, rank: int, event: HostEvent) -> dict[str, Any]:
        return {
            "ph": "X",
            "cat": event.category,
            "name": event.name,
            "pid": self._pid(rank),
            "tid": event.thread,
            "ts": self._stamp(rank, event.start),
            "dur": (event.end - event.start) / 1000,
            "args": event.args,
        }

    def _device_json(self, rank: int, work: DeviceWork) -> list[dict[str, Any]]:
        args = {
            "External id": work.correlation,
            "device": 0,
            "context": 1,
            "stream": work.stream,
            "correlation": work.correlation,
        }
        if work.collective is not None and self.knobs.arguments:
            args |= self._collective_args(rank, self.collectives[work.collective].spec)
        if work.kind == "copy":
            args["bytes"] = 1_000_000
        event = {
            "ph": "X",
            "cat": "gpu_memcpy" if work.kind == "copy" else "kernel",
            "name": work.name,
            "pid": 0,
            "tid": work.stream,
            "ts": self._stamp(rank, work.start),
            "dur": (work.end - work.start) / 1000,
            "args": args,
        }
        flow = {"cat": "ac2g", "name": "ac2g", "id": work.correlation}
        start = {"ph": "s", "pid": self._pid(rank), "tid": work.thread, "ts": self._stamp(rank, work.launch)}
        finish = {"ph": "f", "pid": 0, "tid": work.stream, "ts": self._stamp(rank, work.start), "bp": "e"}
        return [event, flow | start, flow | finish]

    def _collective_args(self, rank: int, spec: CollectiveSpec) -> dict[str, Any]:
        world = self.knobs.world_size
        sent = spec.elements_of(rank)
        received = {"_allgather_base": sent * world, "_reduce_scatter_base": sent // world}.get(spec.op, sent)
        split = "[]"
        if spec.op == "all_to_allv":
            split = str([sent // world + (peer < sent % world) for peer in range(world)])
        return {
            "Collective name": spec.op,
            "In msg nelems": sent,
            "Out msg nelems": received,
            "Group size": world,
            "dtype": spec.dtype,
            "In split size": split,
            "Out split size": split,
            "Process Group Name": "0",
            "Process Group Description": "default_pg",
            "Process Group Ranks": str(list(range(world))),
        }


def file_name(rank: int) -> str:
    """Name of a rank's file."""
    return f"rank{rank}.pt.trace.json.gz"
