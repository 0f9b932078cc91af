"""One run: all sections together, and what must hold between them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from training.config.checks import MANY, Between, check_fields, number, require, word
from training.config.data import DataConfig
from training.config.fault import EVERY_RANK, FaultConfig
from training.config.loop import CheckpointConfig, LoopConfig
from training.config.model import DenseConfig, EmulationConfig, ModelConfig
from training.config.parallel import (
    NETWORKS,
    PIPELINES,
    SHARDINGS,
    QCommsConfig,
    ReplicaConfig,
    ShardingConfig,
)

DEVICES = ("cpu", "cuda")


@dataclass(frozen=True)
class Config:
    """One run."""

    name: str
    """Of the run and of its folder below ``--traces``."""
    world_size: int = field(metadata={"allowed": Between(1, MANY)})
    """Ranks of the run, a process each."""
    ranks_per_node: int = number(0, 0)
    """0: all ranks on one node."""
    device: str = word("cpu", DEVICES)
    """cuda: NCCL, and a GPU per rank."""
    network: str = word("as_is", NETWORKS)
    """Preset of NCCL and libfabric variables (``training/network.py``); what is set already wins."""
    pipeline: str = word("none", PIPELINES)
    """sparse_dist: TrainPipelineSparseDist, which sends the next batch's ids during this batch's compute."""
    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    sharding: ShardingConfig = field(default_factory=ShardingConfig)
    qcomms: QCommsConfig = field(default_factory=QCommsConfig)
    replicas: ReplicaConfig = field(default_factory=ReplicaConfig)
    dense: DenseConfig = field(default_factory=DenseConfig)
    emulation: EmulationConfig = field(default_factory=EmulationConfig)
    fault: FaultConfig = field(default_factory=FaultConfig)
    loop: LoopConfig = field(default_factory=LoopConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)

    def __post_init__(self) -> None:
        check_fields(self)
        require(
            re.fullmatch(r"\w[\w.-]{0,99}", self.name, re.ASCII) is not None,
            "name",
            self.name,
            "a folder's name of at most 100 letters, digits, dots, dashes and underscores",
        )
        require(
            self.world_size % self.local_world_size == 0,
            "ranks_per_node",
            self.ranks_per_node,
            f"0 or a divisor of world_size ({self.world_size})",
        )
        self._check_device()
        self._check_replicas()
        self._check_sharding()
        self._check_fault()

    @property
    def local_world_size(self) -> int:
        """Ranks of one node."""
        return self.ranks_per_node or self.world_size

    @property
    def group_size(self) -> int:
        """Ranks that share one copy of the tables."""
        return self.replicas.group_size or self.world_size

    @property
    def vocabulary(self) -> int:
        """Distinct ids of a table."""
        return self.data.vocabulary or self.model.rows

    def _check_device(self) -> None:
        if self.device == "cpu":
            require(
                self.sharding.kind != "row_wise",
                "sharding.kind",
                self.sharding.kind,
                f"one of {', '.join(kind for kind in SHARDINGS if kind != 'row_wise')} on device cpu, where "
                "TorchRec offers no row-wise sharding: sharding.partitions splits tables by hash instead",
            )
            require(self.dense.precision != "tf32", "dense.precision", "tf32", "fp32 or bf16 on device cpu")
            require(not self.data.pin_memory, "data.pin_memory", True, "false on device cpu")

    def _check_sharding(self) -> None:
        sharding = self.sharding
        require(
            not sharding.partitions or sharding.placement == "aligned" or self.group_size >= 2,
            "sharding.placement",
            sharding.placement,
            "aligned where one rank holds all tables: misaligned leaves a rank without any",
        )

    def _check_replicas(self) -> None:
        size = self.replicas.group_size
        require(
            size == 0 or (size < self.world_size and self.world_size % size == 0),
            "replicas.group_size",
            size,
            f"0 or a divisor of world_size ({self.world_size}) smaller than it",
        )

    def _check_fault(self) -> None:
        fault = self.fault
        require(
            EVERY_RANK <= fault.rank < self.world_size,
            "fault.rank",
            fault.rank,
            f"a rank of this run, 0 to {self.world_size - 1}, or -1 for all",
        )
        if fault.kind == "host_sync":
            # A GPU waits for what is queued, a CPU for as long as it is told.
            needed = "delay_ms" if self.device == "cpu" else "count"
            value = getattr(fault, needed)
            allowed = f"above 0 with fault.kind = host_sync on device {self.device}"
            require(value > 0, f"fault.{needed}", value, allowed)
        if fault.kind == "hot_partition":
            partitions = self.sharding.partitions
            require(
                partitions >= 2,
                "sharding.partitions",
                partitions,
                "2 or more with fault.kind = hot_partition",
            )
            require(
                fault.table < self.model.tables,
                "fault.table",
                fault.table,
                f"a table of this run, 0 to {self.model.tables - 1}",
            )
            require(
                fault.partition < partitions,
                "fault.partition",
                fault.partition,
                f"a partition of this run, 0 to {partitions - 1}",
            )
