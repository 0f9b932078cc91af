"""The program every rank runs: the phases of TorchRec's training loop, issued in host order."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from traceinsight.base.hardware import GPUS
from traceinsight.simulate.machine import AUTOGRAD, Costs, Int64, Machine, Meeting
from traceinsight.simulate.names import Names, names_for
from traceinsight.simulate.workload import PCIE_BYTES_PER_NS, Exchange, ModuleWork, Workload

COMPUTE, EXCHANGE, DATA_DIST, COPY, DENSE, REPLICA = 7, 20, 21, 22, 24, 28
"""Streams: compute, TorchRec's all-to-alls, its data distribution, copies, DDP, replica sync."""

_OPTIMIZER_KERNELS = 4
_JITTER_LIMIT = 3.0  # standard deviations; with the largest jitter allowed, 0.3, a time stays above 0


@dataclass
class _Batch:
    """A batch on its way: when each module's ids (and, at depth 2, embeddings) are there."""

    copied_ns: Int64
    ids_ns: Int64 | None = None
    splits: Meeting | None = None
    exchanged: list[Meeting] = field(default_factory=list)


class Program:
    """Issues steps to a machine; keeps the batches of the pipeline between them."""

    def __init__(self, work: Workload) -> None:
        spec = work.spec
        latency = spec.cluster.launch_latency_us
        self.work, self.spec = work, spec
        self.names: Names = names_for(spec.cluster.gpu)
        self.machine = Machine(
            spec.world_size,
            Costs(
                launch_ns=round(spec.host.launch_us * 1e3),
                collective_ns=round(spec.host.collective_us * 1e3),
                launch_latency_ns=round(
                    (GPUS[spec.cluster.gpu].launch_latency_us if latency is None else latency) * 1e3
                ),
                queue_depth=spec.host.queue_depth,
                slowdown=spec.comms.slowdown,
            ),
            self._noise,
        )
        self._loader_ready = np.zeros(spec.world_size, dtype=np.int64)
        self._taken: deque[Int64] = deque(maxlen=spec.input.prefetch)
        self._batches: deque[_Batch] = deque()
        self._index = -1  # of the step, counted from the first captured one
        self.capture_start_ns = self.machine.host_ns

    def run(self) -> None:
        """Fill the pipeline, then issue the steps before the capture and those in it."""
        for ahead in range(self.spec.pipeline_depth + (self.spec.pipeline_depth > 0)):
            self._load()
            if ahead < self.spec.pipeline_depth:
                self._start_distribution(self._batches[-1])
                self._finish_distribution(self._batches[-1])
        if self.spec.pipeline_depth == 2:
            self._look_up(self._batches[0])
        self.machine.forget()
        for index in range(-self.spec.capture.warmup, self.spec.capture.steps):
            self._index = index
            if index == 0:
                self.capture_start_ns = self.machine.host_ns
            self.machine.step = self.spec.capture.first_step + index
            with self.machine.span(f"ProfilerStep#{self.machine.step}"):
                self._step()

    # ---- the phases, in the order of a step -------------------------------------------------------------

    def _step(self) -> None:
        machine, depth = self.machine, self.spec.pipeline_depth
        with machine.span("## zero_grad ##"):
            machine.busy(round(self.spec.host.phase_us * 1e3))
        if depth == 0:
            self._load()
        batch = self._batches[0]
        with machine.span("## wait_for_batch ##"):
            machine.wait(COMPUTE, batch.copied_ns)
        if depth == 0:
            with machine.span("## sparse_data_dist ##"), machine.in_phase("sparse_data_dist"):
                self._start_distribution(batch)
                self._finish_distribution(batch)
        else:
            with machine.span("## start_sparse_data_dist ##"), machine.in_phase("sparse_data_dist"):
                self._start_distribution(self._batches[depth])
            self._load()
        with machine.span("## forward ##"), machine.in_phase("forward"):
            self._forward(batch)
        if depth > 0:
            with machine.span("## wait_sparse_data_dist ##"), machine.in_phase("sparse_data_dist"):
                self._finish_distribution(self._batches[depth])
        with machine.span("## backward ##"), machine.in_phase("backward"):
            machine.busy(round(self.spec.host.phase_us * 1e3))
            with machine.on_thread(AUTOGRAD):
                reduced = self._backward()
        with machine.span("## optimizer ##"), machine.in_phase("optimizer"):
            self._optimizer(reduced)
        self._synchronise_replicas()
        self._batches.popleft()

    def _load(self) -> None:
        """Take a batch from the loader and copy it to the GPU."""
        machine, settings = self.machine, self.spec.input
        period = settings.loader_ms * 1e6 + self._late("input_ms")
        free = self._taken[0] if len(self._taken) == settings.prefetch else 0
        self._loader_ready = np.rint(np.maximum(self._loader_ready, free) + period).astype(np.int64)
        with machine.span("enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"):
            machine.busy(round(settings.fetch_us * 1e3))
            machine.until(self._loader_ready)
        self._taken.append(machine.host_ns)
        size = np.full(self.spec.world_size, self.work.batch_bytes, dtype=np.int64)
        with machine.span("## copy_batch_to_gpu ##"):
            copied = machine.copy(
                "Memcpy HtoD (Pinned -> Device)",
                COPY,
                size,
                np.rint(size / PCIE_BYTES_PER_NS).astype(np.int64),
            )
        self._batches.append(_Batch(copied))

    def _start_distribution(self, batch: _Batch) -> None:
        """Sort ids by owner and exchange how many there are; the counts come back to the host later."""
        machine, stream = self.machine, self._data_stream()
        machine.wait(stream, batch.copied_ns)
        machine.kernel(
            "fbgemm::block_bucketize_sparse_features", self.names.bucketize, stream, self.work.bucketize_ns
        )
        with machine.span("## all2all_data:kjt splits ##"), machine.span("nccl:all_to_all"):
            batch.splits = self._exchange(
                "all2all_data:kjt splits", self.work.splits, machine.stream_ns(stream)
            )
        machine.wait(stream, batch.splits.end_ns)
        size = self.work.splits.payload.out_elements * 8
        machine.copy("Memcpy DtoH (Device -> Pinned)", stream, size, np.full(self.spec.world_size, 2_000))

    def _finish_distribution(self, batch: _Batch) -> None:
        """The host waits for the counts, then exchanges lengths and ids and puts them in table order."""
        machine, stream = self.machine, self._data_stream()
        machine.synchronise(stream)
        ready = machine.stream_ns(stream)
        for module in self.work.modules:
            for what, exchange in (("lengths", module.lengths), ("values", module.values)):
                with machine.span(f"## all2all_data:kjt {what} ##"), machine.span("nccl:all_to_all"):
                    meeting = self._exchange(f"all2all_data:kjt {what}:{module.module.name}", exchange, ready)
            machine.wait(stream, meeting.end_ns)
            with machine.span("## all2all_data:recat_values ##"):
                machine.kernel(
                    "fbgemm::permute_2D_sparse_data", self.names.permute, stream, self.work.bucketize_ns / 2
                )
        batch.ids_ns = machine.stream_ns(stream)

    def _forward(self, batch: _Batch) -> None:
        machine, dense = self.machine, self.spec.dense
        machine.busy(round((self.spec.host.phase_us + self.spec.host.stall_ms * 1e3) * 1e3))
        first_extra_ms = self.spec.capture.first_step_extra_ms if self._index == 0 else 0.0
        machine.busy(np.rint(self._late("host_ms") + first_extra_ms * 1e6).astype(np.int64))
        exchanged = batch.exchanged or self._look_up(batch)
        if self.spec.pipeline_depth == 2:
            self._look_up(self._batches[1])
        count = len(self.work.forward_ns)
        early = round(count * dense.before_exchange_share)
        small = _spread(dense.small_kernels // 3, count)
        syncs = _spread(self.spec.host.sync_points, count)
        for index, kernel_ns in enumerate(self.work.forward_ns):
            if index == early:
                self._collect(exchanged)
            machine.kernel("aten::addmm", self.names.gemm, COMPUTE, kernel_ns, label=f"fwd.{index}")
            self._small(small[index], "aten::add", f"fwd.small.{index}")
            for _ in range(syncs[index]):
                with machine.span("aten::item", "cpu_op"):
                    machine.synchronise(COMPUTE)
        if early >= count:
            self._collect(exchanged)

    def _look_up(self, batch: _Batch) -> list[Meeting]:
        """Every module's lookup, and its exchange as soon as its output is there."""
        machine = self.machine
        if batch.ids_ns is None:
            raise RuntimeError("a batch was looked up before its ids were distributed")
        machine.wait(COMPUTE, batch.ids_ns)
        late = self._late("compute_ms")
        for module in self.work.modules:
            name = module.module.name
            machine.kernel(
                "fbgemm::split_embedding_codegen_lookup_rowwise_adagrad_function",
                self.names.lookup(module.module.dim),
                COMPUTE,
                module.lookup_ns + late,
                label=f"lookup.{name}",
            )
            late = np.zeros_like(late)
            label = "All2All_Pooled_fwd" if module.pooled else "All2All_Seq_fwd"
            self._codec("encoder", self.spec.comms.qcomms_forward, module.encode_ns["forward"], name)
            with machine.span(f"## {label} ##"), machine.span("nccl:all_to_all"):
                batch.exchanged.append(
                    self._exchange(f"{label}:{name}", module.forward, machine.stream_ns(COMPUTE))
                )
        return batch.exchanged

    def _collect(self, exchanged: Sequence[Meeting]) -> None:
        """Compute waits for the embeddings, decodes them and adds partial vectors up."""
        machine = self.machine
        for module, meeting in zip(self.work.modules, exchanged, strict=True):
            name = module.module.name
            with machine.span("## PooledEmbeddingsAwaitable wait() ##"):
                machine.wait(COMPUTE, meeting.end_ns)
            self._codec("decoder", self.spec.comms.qcomms_forward, module.decode_ns["forward"], name)
            machine.kernel(
                "fbgemm::permute_pooled_embs",
                self.names.combine,
                COMPUTE,
                module.combine_ns,
                label=f"combine.{name}",
            )

    def _backward(self) -> Int64:
        """Dense backward with gradient buckets, then the embeddings; returns when all are reduced."""
        machine, dense, work = self.machine, self.spec.dense, self.work
        count = len(work.backward_ns)
        late = round(count * dense.before_exchange_share)
        small = _spread(dense.small_kernels // 2, count)
        done = np.linspace(0, count, len(work.buckets) + 1)[1:]
        reduced = machine.stream_ns(DENSE)
        issued = 0
        sent: list[Meeting] = []
        for index, kernel_ns in enumerate(work.backward_ns):
            if index == count - late:
                sent = self._send_gradients()
            machine.kernel("autograd::mm", self.names.gemm, COMPUTE, kernel_ns, label=f"bwd.{index}")
            self._small(small[index], "aten::mul", f"bwd.small.{index}")
            while issued < len(done) and done[issued] <= index + 1:
                with machine.span("nccl:all_reduce"):
                    reduced = self._reduce(f"ddp bucket {issued}", work.buckets[issued], DENSE)
                issued += 1
        self._update(sent or self._send_gradients())
        return reduced

    def _send_gradients(self) -> list[Meeting]:
        sent = []
        for module in self.work.modules:
            name = module.module.name
            label = "All2All_Pooled_bwd" if module.pooled else "All2All_Seq_bwd"
            self._codec("encoder", self.spec.comms.qcomms_backward, module.encode_ns["backward"], name)
            with self.machine.span(f"## {label} ##"), self.machine.span("nccl:all_to_all"):
                sent.append(
                    self._exchange(f"{label}:{name}", module.backward, self.machine.stream_ns(COMPUTE))
                )
        return sent

    def _update(self, sent: Sequence[Meeting]) -> None:
        """The fused backward and optimizer of every lookup."""
        for module, meeting in zip(self.work.modules, sent, strict=True):
            name = module.module.name
            self.machine.wait(COMPUTE, meeting.end_ns)
            self._codec("decoder", self.spec.comms.qcomms_backward, module.decode_ns["backward"], name)
            self.machine.kernel(
                "autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>",
                self.names.update(module.module.dim),
                COMPUTE,
                module.update_ns,
                label=f"update.{name}",
            )

    def _optimizer(self, reduced_ns: Int64) -> None:
        machine = self.machine
        machine.busy(round(self.spec.host.phase_us * 1e3))
        machine.wait(COMPUTE, reduced_ns)
        with machine.span("Optimizer.step#Adam.step"):
            for index in range(_OPTIMIZER_KERNELS):
                machine.kernel(
                    "aten::_fused_adam_", self.names.optimizer, COMPUTE,
                    self.work.optimizer_ns / _OPTIMIZER_KERNELS, label=f"optimizer.{index}",
                )  # fmt: skip
            self._small(self.spec.dense.small_kernels // 6, "aten::add_", "optimizer.small")

    def _synchronise_replicas(self) -> None:
        sync, settings = self.work.replica_sync, self.spec.two_d
        if sync is None or settings is None or self._index % settings.sync_every:
            return
        machine = self.machine
        with machine.span("## dmp_collection_sync ##"), machine.in_phase("replica_sync"):
            with machine.span("nccl:all_reduce"):
                end = self._reduce("dmp_collection_sync", sync, REPLICA)
            machine.wait(COMPUTE, end)

    # ---- pieces -----------------------------------------------------------------------------------------

    def _data_stream(self) -> int:
        """The pipeline distributes data beside compute; without it everything is on the compute stream."""
        return DATA_DIST if self.spec.pipeline_depth else COMPUTE

    def _exchange(self, label: str, exchange: Exchange, ready_ns: Int64) -> Meeting:
        return self.machine.collective(
            label, self.names.all_to_all, EXCHANGE, exchange.payload, exchange.transfer_ns, ready_ns
        )

    def _reduce(self, label: str, exchange: Exchange, stream: int) -> Int64:
        ready = self.machine.stream_ns(COMPUTE)
        return self.machine.collective(
            label, self.names.all_reduce, stream, exchange.payload, exchange.transfer_ns, ready
        ).end_ns

    def _codec(self, way: str, dtype: str, work_ns: NDArray[np.float64], module: str) -> None:
        if dtype == "fp32":
            return
        with self.machine.span(f"## {way} {dtype} None ##"):
            self.machine.kernel(
                f"fbgemm::{self.names.codec_operator(way, dtype)}",
                self.names.codec(way, dtype),
                COMPUTE,
                work_ns,
                label=f"{way}.{self.machine.phase}.{module}",
            )

    def _small(self, count: int, operator: str, label: str) -> None:
        for index in range(count):
            self.machine.kernel(
                operator,
                self.names.elementwise,
                COMPUTE,
                self.spec.dense.small_kernel_us * 1e3,
                label=f"{label}.{index}",
            )

    def _late(self, what: str) -> NDArray[np.float64]:
        """Injected extra time of each rank in this step, ns."""
        extra = np.zeros(self.spec.world_size)
        for one in self.spec.stragglers:
            if not one.steps or self._index in one.steps:
                extra[one.rank] += getattr(one, what) * 1e6
        return extra

    def _noise(self, label: str, step: int) -> NDArray[np.float64]:
        """Factors around 1, shape (ranks,). Keyed by label and step: an edit elsewhere changes none."""
        if self.spec.jitter == 0:
            return np.ones(self.spec.world_size)
        key = (self.spec.seed, step % 2**32, crc32(label.encode()))  # steps before number 0 are negative
        drawn = np.random.default_rng(key).standard_normal(self.spec.world_size)
        return 1 + self.spec.jitter * np.clip(drawn, -_JITTER_LIMIT, _JITTER_LIMIT)


def _spread(count: int, slots: int) -> list[int]:
    """``count`` things over ``slots`` places, evenly."""
    edges = np.linspace(0, count, slots + 1).astype(int)
    return [int(number) for number in np.diff(edges)]


__all__ = ["COMPUTE", "COPY", "DATA_DIST", "DENSE", "EXCHANGE", "REPLICA", "ModuleWork", "Program"]
