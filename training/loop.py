"""The training loop, and the few lines that make its traces: ``Capture(...)`` and ``recording.step()``."""

from __future__ import annotations

from pathlib import Path

import torch.distributed as dist

from traceinsight.capture import Capture
from training import run_folder
from training.config import Config, as_dict
from training.faults import make_fault
from training.ground_truth import ground_truth
from training.hooks import make_hooks, stop_on_signal
from training.loading import batches
from training.state import TrainState, gather, start
from training.stepping import make_advance
from training.tables import bag_configs, sequence_configs


def train(config: Config, traces: Path) -> TrainState:
    """Train in an initialised process group, write the traces into ``traces``; return the final state.

    Raises LossNotFiniteError, on all ranks after the same step; what was traced until then is kept.
    """
    rank = dist.get_rank()
    fault = make_fault(config, rank)
    state = start(config, fault)
    stop_on_signal(state)
    hooks = make_hooks(config)
    hooks.resume(state)
    state.first_step = state.step
    if state.finished:
        return state  # by an earlier run, whose record stays
    run_folder.begin(state, traces)
    stream = batches(config, rank, state.data_position, fault)
    advance = make_advance(state)

    with make_capture(config, state, traces) as recording:
        while not state.finished:
            state.metrics.add(advance(stream))
            fault.end_step()
            state.step += 1
            state.data_position += 1
            if state.metrics.pending_steps == config.loop.window or state.finished:
                close_window(state, recording)
            hooks.on_step_end(state)
            recording.step()
        hooks.on_end(state)
        truth = ground_truth(config, gather(fault.suffered()), gather(state.plan_ranks()))
        recording.record("faults", truth)
        recording.record("wire", state.wire.describe(config, state.step - state.first_step))
    return state


def close_window(state: TrainState, recording: Capture) -> None:
    """Average the window's losses over ranks, keep them, and agree whether to stop."""
    steps, state.stop_agreed = state.metrics.close(state.step, state.stop_asked)
    for offset, measured in enumerate(steps, start=state.step - len(steps)):
        recording.measured(offset, **measured)
    recording.record("windows", state.metrics.state_dict()["curve"])


def make_capture(config: Config, state: TrainState, traces: Path) -> Capture:
    """Return the capture of this run, told what its traces do not say."""
    loop = config.loop
    return Capture(
        traces,
        wait=loop.wait,
        warmup=loop.warmup,
        active=loop.active,
        repeat=loop.repeat,
        run_id=config.name,
        first_step=state.step,
        batch_per_rank=config.data.batch_per_rank,
        tables=[*bag_configs(config), *sequence_configs(config)],
        mean_ids=config.data.pooling / (config.sharding.partitions or 1),
        plan=state.model.plan,
        estimates=state.planned,
        measure=state.model if loop.measure_tables else None,
        config=as_dict(config),
    )
