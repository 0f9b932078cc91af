"""Everything that changes while a job trains, and how it begins."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
import torch.distributed as dist
from torchrec.distributed import DistributedModelParallel
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward
from torchrec.optim.clipping import GradientClipping, GradientClippingOptimizer
from torchrec.optim.keyed import CombinedOptimizer, KeyedOptimizer, KeyedOptimizerWrapper
from torchrec.optim.optimizers import in_backward_optimizer_filter
from torchrec.optim.rowwise_adagrad import RowWiseAdagrad

from training.codecs import WireCounter
from training.config import Config
from training.emulation import watch_lookups
from training.faults import Fault
from training.metrics import Metrics
from training.model import RankingModel
from training.replicas import Sync, shard
from training.sharding import make_plan, make_sharders


@dataclass
class TrainState:
    """What a checkpoint must hold: model, optimizer, step, data_position, metrics. The rest is rebuilt.

    ``step`` is the number of finished steps, ``data_position`` the number of batches of this rank's stream
    that were trained on (batches a pipeline has only read ahead do not count).
    """

    config: Config
    device: torch.device
    model: DistributedModelParallel
    optimizer: KeyedOptimizer
    """Of tables (fused, updated in backward) and dense part together."""
    dense_optimizer: KeyedOptimizer
    """Of the dense part alone; without clipping."""
    sync_replicas: Sync | None
    planned: Any
    """The planner's sharding options, None where the placement was given."""
    wire: WireCounter
    """Bytes of embeddings this process sent since it began."""
    metrics: Metrics = field(default_factory=Metrics)
    step: int = 0
    first_step: int = 0
    """Where this process began: the number of steps that earlier ones had finished."""
    data_position: int = 0
    stop_asked: bool = False
    """This rank was told to stop (a signal)."""
    stop_agreed: bool = False
    """All ranks know that some rank was; set at the end of a window, on all after the same step."""

    @property
    def finished(self) -> bool:
        """Whether no further step is to be made."""
        return self.stop_agreed or self.step >= self.config.loop.steps

    def plan_ranks(self) -> dict[str, list[int]]:
        """Return table -> the ranks that own it, in this rank's group of replicas."""
        plans = self.model.plan.plan.values()
        return {name: list(sharding.ranks) for module in plans for name, sharding in module.items()}


def start(config: Config, fault: Fault) -> TrainState:
    """Build, shard and initialise; the default process group must exist. Collective."""
    device = torch.device(config.device)
    if config.device == "cuda":
        device = torch.device("cuda", torch.cuda.current_device())
    if config.dense.precision == "tf32":
        torch.set_float32_matmul_precision("high")
    torch.manual_seed(config.data.seed)  # the dense part must start the same on every rank
    model = RankingModel(config, fault)
    for tables in [model.tables, *([model.sequences] if model.has_sequences else [])]:
        apply_optimizer_in_backward(RowWiseAdagrad, tables.parameters(), {"lr": config.loop.embedding_lr})
    if config.dense.compile:
        model.dense_part.compile(backend=config.dense.compile_backend)
    wire = WireCounter()
    sharders = make_sharders(config, wire)
    plan, planned = make_plan(config, model, sharders)
    sharded, sync = shard(config, model, plan, sharders, device)
    lookup_us = config.emulation.lookup_us_per_1k_ids
    watch_lookups(sharded, lookup_us, fault.before_lookup, fault.after_lookup)
    sharded.train()
    dense = KeyedOptimizerWrapper(
        dict(in_backward_optimizer_filter(sharded.named_parameters())),
        lambda parameters: torch.optim.Adagrad(parameters, lr=config.loop.dense_lr),
    )
    combined = CombinedOptimizer([sharded.fused_optimizer, _clipped(dense, config.dense.clip_norm)])
    if sync is not None:
        sync()  # replicas initialise their tables each for itself
    return TrainState(config, device, sharded, combined, dense, sync, planned, wire)


def _clipped(optimizer: KeyedOptimizer, largest_norm: float) -> KeyedOptimizer:
    if largest_norm == 0:
        return optimizer
    return GradientClippingOptimizer(optimizer, GradientClipping.NORM, max_gradient=largest_norm)


def gather(values: Any) -> list[Any]:
    """Return every rank's ``values`` in the order of ranks, on all ranks."""
    gathered: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(gathered, values)
    return gathered
