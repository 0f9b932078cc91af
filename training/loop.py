"""The training loop, and the two lines that make its traces.

``with Capture(...)`` and ``recording.step(...)``.
"""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import torch
import torch.distributed as dist
from torch.profiler import record_function
from torchrec.distributed import DistributedModelParallel
from torchrec.optim.keyed import CombinedOptimizer

from traceinsight.capture import Capture
from training.checkpoint import Checkpointer
from training.config import Config
from training.data import Batch, ClickStream
from training.faults import ground_truth, make_fault
from training.model import build, table_configs


def train(config: Config, traces: Path) -> list[float]:
    """Train in an initialised process group, write the traces below ``traces``; return this rank's losses."""
    device = torch.device(config.device)
    rank = dist.get_rank()
    fault = make_fault(config.fault, rank)
    model, optimizer = build(config, fault, device)
    model.train()
    stream = ClickStream(config, rank)
    losses: list[float] = []

    with (
        checkpointer(config, model, optimizer) as keeper,
        Capture(
            traces,
            wait=config.loop.wait,
            warmup=config.loop.warmup,
            active=config.loop.active,
            run_id=config.name,
            batch_per_rank=config.data.batch_per_rank,
            tables=table_configs(config),
            mean_ids=config.data.pooling,
            plan=model.plan,
        ) as recording,
    ):
        for step in range(keeper.resume(), config.loop.steps):
            with record_function("## load_batch ##"):
                batch = stream.batch(step)
            with record_function("## copy_batch_to_gpu ##"):
                batch = batch.to(device, non_blocking=True)
            with record_function("## zero_grad ##"):
                optimizer.zero_grad()
            with record_function("## forward ##"):
                loss, _ = model(batch)
            with record_function("## backward ##"):
                loss.backward()
            with record_function("## optimizer ##"):
                optimizer.step()
            losses.append(loss.item())
            recording.step(loss=losses[-1], normalized_entropy=normalized_entropy(losses[-1], batch))
            if keeper.after_step(step + 1):
                break
        recording.record("faults", ground_truth(config.fault, gather(fault.measured_ms)))
    return losses


def checkpointer(
    config: Config, model: DistributedModelParallel, optimizer: CombinedOptimizer
) -> Checkpointer:
    """Return what saves and restores this run, as ``config.checkpoint`` says."""
    wanted = config.checkpoint
    return Checkpointer(
        model,
        optimizer,
        folder=Path(wanted.folder) if wanted.folder else None,
        every=wanted.every,
        keep=wanted.keep,
        last_step=config.loop.steps,
        start_from=Path(wanted.start_from) if wanted.start_from else None,
        about={"config": dataclasses.asdict(config)},
    )


def normalized_entropy(loss: float, batch: Batch) -> float | None:
    """Return loss / entropy of the batch's click rate.

    Below 1 beats guessing the rate. None without both labels.
    """
    rate = batch.labels.mean().item()
    if not 0 < rate < 1:
        return None
    return loss / -(rate * math.log(rate) + (1 - rate) * math.log(1 - rate))


def gather(values: list[float]) -> list[list[float]]:
    """Return every rank's ``values``, in the order of ranks, on all ranks."""
    gathered: list[list[float]] = [[] for _ in range(dist.get_world_size())]
    dist.all_gather_object(gathered, values)
    return gathered
