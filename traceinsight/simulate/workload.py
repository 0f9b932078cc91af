"""What a step consists of: how long each kernel runs and what each collective moves, per rank."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from traceinsight.base.errors import UsageError
from traceinsight.base.hardware import GPUS
from traceinsight.simulate.machine import Payload
from traceinsight.simulate.network import Fabric, all_reduce_ns, all_to_all_ns, fabric_of
from traceinsight.simulate.sharding import Float, Module, Sharding, shard_tables
from traceinsight.simulate.spec import Dtype, Spec

Int64 = NDArray[np.int64]
Groups = tuple[tuple[int, ...], ...]

WIRE: Mapping[Dtype, tuple[str, int]] = {
    "fp32": ("Float", 4),
    "bf16": ("BFloat16", 2),
    "fp16": ("Half", 2),
    "fp8": ("Byte", 1),
    "int8": ("Byte", 1),
}
"""Type on the wire -> (as collective arguments name it, bytes per value)."""

SCALE_BYTES = 8
"""FBGEMM's row-wise FP8 and INT8 put a scale and an offset, FP32 each, behind every row."""

PCIE_BYTES_PER_NS = 25.0  # pinned host memory over PCIe 4 x16
_MOST_COUNT = 2**53
_ID_BYTES = 8
_WEIGHT_BYTES = 4  # FP32 tables
_UPDATE_PASSES = 3  # backward: read gradient, read and write weight (and the row's optimizer state)
_ADAM_PASSES = 7  # read gradient, weight, two moments; write weight, two moments


@dataclass(frozen=True, slots=True)
class Exchange:
    """A collective of all groups, with the transfer time of each, ns."""

    payload: Payload
    transfer_ns: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class ModuleWork:
    """The kernels (ns per rank, shape (ranks,)) and exchanges of one embedding module."""

    module: Module
    pooled: bool
    lookup_ns: Float
    update_ns: Float
    combine_ns: Float
    encode_ns: Mapping[str, Float]  # "forward", "backward"
    decode_ns: Mapping[str, Float]
    forward: Exchange
    backward: Exchange
    lengths: Exchange
    values: Exchange


@dataclass(frozen=True, slots=True)
class Workload:
    """Everything a step needs. Times in ns; ``batch_bytes`` is what is copied to the GPU per batch."""

    spec: Spec
    fabric: Fabric
    sharding: Sharding
    groups: Groups
    modules: tuple[ModuleWork, ...]
    splits: Exchange
    forward_ns: tuple[float, ...]  # per dense kernel
    backward_ns: tuple[float, ...]
    optimizer_ns: float
    buckets: tuple[Exchange, ...]
    replica_sync: Exchange | None
    batch_bytes: int
    bucketize_ns: float


def build_workload(spec: Spec) -> Workload:
    """Cost every operation of a specification."""
    return _Costing(spec).workload()


def sharding_groups(spec: Spec) -> tuple[Groups, Groups]:
    """(sharding groups, replica groups). Consecutive ranks share a node."""
    world, size = spec.world_size, spec.group_size
    replicas = world // size
    blocks = tuple(tuple(range(first, first + size)) for first in range(0, world, size))
    if spec.two_d is None or spec.two_d.inside_node == "all_to_all":
        return blocks, tuple(tuple(range(first, world, size)) for first in range(size))
    strided = tuple(tuple(range(first, world, replicas)) for first in range(replicas))
    return strided, tuple(tuple(range(first, first + replicas)) for first in range(0, world, replicas))


def wire_bytes(values: Float, dtype: Dtype, quantize_row: int) -> Float:
    """Bytes on the wire for so many values: width of the type, and the scales of its rows."""
    size = values * WIRE[dtype][1]
    if dtype in {"fp8", "int8"} and quantize_row:
        size = size + np.ceil(values / quantize_row) * SCALE_BYTES
    return np.asarray(size, dtype=np.float64)


def _counts(values: Float) -> Int64:
    """Whole numbers of values or bytes, as collective arguments hold them.

    Raises:
        UsageError: One of them is more than a float holds exactly, and than any collective moves.

    """
    if float(values.sum()) > _MOST_COUNT:
        raise UsageError(
            f"a collective of {float(values.sum()):.3g} values.",
            where="tables (rows, mean_ids, dim, partitions) with batch_per_rank, dense.parameters",
            what_to_do=f"Allowed: <= {_MOST_COUNT:,}.",
        )
    return np.rint(values).astype(np.int64)


class _Costing:
    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.fabric = fabric_of(spec.cluster)
        self.sharding = shard_tables(spec)
        self.groups, self.replicas = sharding_groups(spec)
        gpu = GPUS[spec.cluster.gpu]
        self.hbm = (spec.cluster.hbm_gbps or gpu.hbm_gbps) * spec.cluster.hbm_efficiency  # bytes per ns
        peak = {"bf16": gpu.bf16_tflops, "tf32": gpu.tf32_tflops, "fp32": gpu.fp32_tflops}
        self.flop_per_ns = peak[spec.dense.precision] * 1e3 * spec.cluster.gemm_efficiency
        self.position = np.zeros(spec.world_size, dtype=np.int64)
        for group in self.groups:
            self.position[list(group)] = np.arange(len(group))

    def workload(self) -> Workload:
        spec, dense = self.spec, self.spec.dense
        batch = spec.batch_per_rank
        forward_ns = (
            tuple(one * 1e3 for one in dense.forward_kernels_us)
            or (dense.forward_gflop * 1e9 * batch / self.flop_per_ns / dense.kernels,) * dense.kernels
        )
        ids = sum(float(module.ids.sum()) for module in self.sharding.modules.values())
        features = sum(float(module.shards.sum()) for module in self.sharding.modules.values())
        return Workload(
            spec=spec,
            fabric=self.fabric,
            sharding=self.sharding,
            groups=self.groups,
            modules=tuple(self._module(module) for module in self.sharding.modules.values()),
            splits=self._exchange(
                np.full((spec.group_size,) * 2, 2.0 * len(self.sharding.modules)), "fp32", ids=True
            ),
            forward_ns=forward_ns,
            backward_ns=tuple(
                one * dense.backward_factor / 2 for one in reversed(forward_ns) for _ in range(2)
            ),
            optimizer_ns=dense.parameters * 4 * _ADAM_PASSES / self.hbm,
            buckets=self._buckets(),
            replica_sync=self._replica_sync(),
            batch_bytes=round(batch * (ids * _ID_BYTES + features * 4 + spec.input.dense_features * 4)),
            bucketize_ns=2 * batch * (ids * _ID_BYTES + features * 4) / self.hbm,
        )

    def _module(self, module: Module) -> ModuleWork:
        spec = self.spec
        comms, batch, size = spec.comms, spec.batch_per_rank, spec.group_size
        examples = batch * size  # an owner looks up the ids of its whole group
        read = examples * module.values_read * _WEIGHT_BYTES
        written = examples * module.values_sent * _WEIGHT_BYTES
        received = np.full(size, batch * module.values_sent.sum())
        sent_values = np.repeat(batch * module.values_sent[:, None], size, axis=1)
        codec = {
            "forward": (examples * module.values_sent, received),
            "backward": (received, examples * module.values_sent),
        }
        types: dict[str, Dtype] = {"forward": comms.qcomms_forward, "backward": comms.qcomms_backward}
        lengths = np.repeat(batch * module.shards[None, :], size, axis=0)
        values = np.repeat(batch * module.ids[None, :], size, axis=0)
        return ModuleWork(
            module=module,
            pooled=any(
                table.pooling == "sum" for table in spec.tables.values() if table.module == module.name
            ),
            lookup_ns=self._ranks((read + written + examples * module.ids * _ID_BYTES) / self.hbm),
            update_ns=self._ranks(
                (_UPDATE_PASSES * read + written + 4 * examples * module.ids * _ID_BYTES) / self.hbm
            ),
            combine_ns=self._ranks((received + batch * module.returned_width) * 4 / self.hbm),
            encode_ns={way: self._codec(codec[way][0], types[way]) for way in codec},
            decode_ns={way: self._codec(codec[way][1], types[way]) for way in codec},
            forward=self._exchange(sent_values, types["forward"]),
            backward=self._exchange(sent_values.T, types["backward"]),
            lengths=self._exchange(lengths, "fp32", int32=True),
            values=self._exchange(values, "fp32", ids=True),
        )

    def _ranks(self, per_position: Float) -> Float:
        """From positions in a group to all ranks."""
        return np.asarray(per_position[self.position], dtype=np.float64)

    def _codec(self, values: Float, dtype: Dtype) -> Float:
        """Read one side and write the other, at memory bandwidth; nothing to do in FP32."""
        if dtype == "fp32":
            return np.zeros(self.spec.world_size)
        return self._ranks((values * 4 + wire_bytes(values, dtype, self.spec.comms.quantize_row)) / self.hbm)

    def _exchange(self, values: Float, dtype: Dtype, *, ids: bool = False, int32: bool = False) -> Exchange:
        """All-to-all-v of ``values[i, j]`` from member to member of every sharding group."""
        if ids or int32:
            name, element = ("Long", 8) if ids else ("Int", 4)
            splits = _counts(values)
        else:
            name, element = WIRE[dtype]
            splits = _counts(wire_bytes(values, dtype, self.spec.comms.quantize_row) / element)
        size_bytes = splits.astype(np.float64) * element
        payload = Payload(
            operation="all_to_allv",
            dtype=name,
            element_bytes=element,
            in_elements=splits.sum(axis=1)[self.position],
            out_elements=splits.sum(axis=0)[self.position],
            splits=splits,
            members=self.groups,
            group_names=self.group_names(self.groups, 1) if self.spec.two_d else ("0",),
            description="sharding_pg" if self.spec.two_d else "default_pg",
            off_node_bytes=self._off_node(size_bytes),
        )
        return Exchange(
            payload, tuple(all_to_all_ns(self.fabric, group, size_bytes) for group in self.groups)
        )

    def _off_node(self, size_bytes: Float) -> Int64:
        sent = np.zeros(self.spec.world_size)
        for group in self.groups:
            node = self.fabric.nodes_of(group)
            sent[list(group)] = np.where(node[:, None] == node[None, :], 0.0, size_bytes).sum(axis=1)
        return _counts(sent)

    @staticmethod
    def group_names(groups: Groups, first: int) -> tuple[str, ...]:
        """PyTorch numbers process groups in order of creation; each group has its own name."""
        return tuple(str(first + index) for index in range(len(groups)))

    def _reduction(
        self, elements: Int64, groups: Groups, names: tuple[str, ...], description: str
    ) -> Exchange:
        """All-reduce of FP32 ``elements`` (shape (ranks,), equal inside a group)."""
        sizes = [float(elements[group[0]]) * 4 for group in groups]
        moved = np.zeros(self.spec.world_size)
        for group, size in zip(groups, sizes, strict=True):
            nodes = len(np.unique(self.fabric.nodes_of(group)))
            moved[list(group)] = 2 * (len(group) - 1) / len(group) * size if nodes > 1 else 0.0
        payload = Payload(
            "allreduce", "Float", 4, elements, elements, None, groups, names, description,
            _counts(moved),
        )  # fmt: skip
        return Exchange(
            payload, tuple(all_reduce_ns(self.fabric, *one) for one in zip(groups, sizes, strict=True))
        )

    def _buckets(self) -> tuple[Exchange, ...]:
        world, size = self.spec.world_size, self.spec.dense.parameters * 4
        if world == 1 or size == 0:
            return ()
        count = math.ceil(size / (self.spec.comms.ddp_bucket_mb * 1e6))
        bounds = np.linspace(0, self.spec.dense.parameters, count + 1).astype(np.int64)
        everyone = (tuple(range(world)),)
        return tuple(
            self._reduction(np.full(world, elements, dtype=np.int64), everyone, ("0",), "default_pg")
            for elements in np.diff(bounds)
        )

    def _replica_sync(self) -> Exchange | None:
        if self.spec.two_d is None or len(self.groups) == 1:
            return None
        owned = self._ranks(self.sharding.weight_bytes / _WEIGHT_BYTES * self.spec.two_d.sync_share)
        return self._reduction(
            _counts(owned),
            self.replicas,
            self.group_names(self.replicas, 1 + len(self.groups)),
            "replica_pg",
        )
