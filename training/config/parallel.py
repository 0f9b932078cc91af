"""Where the tables lie, and what travels between ranks in which format."""

from __future__ import annotations

from dataclasses import dataclass

from training.config.checks import check_fields, number, require, word

SHARDINGS = ("table_wise", "column_wise", "row_wise", "planner", "plan_file")
PLACEMENTS = ("aligned", "misaligned")
COMM_FORMATS = ("fp32", "fp16", "bf16", "fp8", "int8")
TOPOLOGIES = ("allreduce_inside", "alltoall_inside")
PIPELINES = ("none", "sparse_dist")
NETWORKS = ("as_is", "efa", "sockets", "sockets_tuned")


@dataclass(frozen=True)
class ShardingConfig:
    """How embedding tables are split over ranks."""

    kind: str = word("table_wise", SHARDINGS)
    """row_wise needs a GPU; planner lets TorchRec choose; plan_file takes ``plan_file``."""
    plan_file: str = ""
    """JSON: table -> rank, or table -> list of ranks of its column shards."""
    partitions: int = number(0, 0, 100_000)
    """Split every table into this many tables by hash(id) % partitions; 0 does not split."""
    placement: str = word("aligned", PLACEMENTS)
    """Of the partitions. aligned: partition p of every table on rank p % ranks, every rank owns as many.
    misaligned: the partitions are dealt out by a rank count of their own (one less), so that the last rank
    owns none and the others more."""

    def __post_init__(self) -> None:
        check_fields(self, "sharding")
        require(
            self.partitions != 1,
            "sharding.partitions",
            self.partitions,
            "0 (no partitions) or at least 2",
        )
        require(
            (self.kind == "plan_file") == bool(self.plan_file),
            "sharding.plan_file",
            self.plan_file,
            "the path of a plan with sharding.kind = plan_file, and empty without",
        )
        require(
            self.partitions == 0 or self.kind == "table_wise",
            "sharding.kind",
            self.kind,
            "table_wise when sharding.partitions is set: a partition lies on one rank",
        )


@dataclass(frozen=True)
class QCommsConfig:
    """Number formats of embeddings (forward) and of their gradients (backward) on the wire."""

    forward: str = word("fp32", COMM_FORMATS)
    """Of the pooled vectors."""
    backward: str = word("fp32", COMM_FORMATS)
    """Of their gradients."""

    def __post_init__(self) -> None:
        check_fields(self, "qcomms")

    @property
    def on(self) -> bool:
        """Whether anything but FP32 travels."""
        return (self.forward, self.backward) != ("fp32", "fp32")


@dataclass(frozen=True)
class ReplicaConfig:
    """2D parallelism: tables are sharded inside groups, and the groups hold replicas of each other."""

    group_size: int = number(0, 0)
    """Ranks that share one copy of the tables; 0: all of them (no replicas)."""
    topology: str = word("alltoall_inside", TOPOLOGIES)
    """What stays inside a node when a group has as many ranks as a node: the all-to-all of a group (groups
    of neighbouring ranks) or the all-reduce between replicas (groups of distant ranks)."""
    sync_interval: int = number(1, 1)
    """Steps between averaging the replicas."""

    def __post_init__(self) -> None:
        check_fields(self, "replicas")
