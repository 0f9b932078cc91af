"""One training step, plain or pipelined."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch.profiler import record_function
from torchrec.distributed.train_pipeline import TrainPipelineSparseDist

from training.data import Batch
from training.model import Prediction
from training.state import TrainState

Advance = Callable[[Iterator[Batch]], Prediction]


def make_advance(state: TrainState) -> Advance:
    """Return what takes the next batch and trains on it."""
    if state.config.pipeline == "none":
        return lambda batches: plain_step(state, batches)
    interval = state.config.replicas.sync_interval if state.config.device == "cuda" else None
    pipeline = TrainPipelineSparseDist(
        state.model,
        state.optimizer,
        state.device,
        execute_all_batches=True,
        dmp_collection_sync_interval_batches=interval,
    )

    def advance(batches: Iterator[Batch]) -> Prediction:
        prediction: Prediction = pipeline.progress(batches)
        if interval is None:
            sync_when_due(state)
        return prediction

    return advance


def plain_step(state: TrainState, batches: Iterator[Batch]) -> Prediction:
    """Train on the next batch; one thing after the other, under the annotations TorchRec's pipelines use."""
    batch = next(batches)
    with record_function("## copy_batch_to_gpu ##"):
        batch = batch.to(state.device, non_blocking=True)
    with record_function("## zero_grad ##"):
        state.optimizer.zero_grad()
    with record_function("## forward ##"):
        loss, prediction = state.model(batch)
    with record_function("## backward ##"):
        loss.backward()
    sync_when_due(state)
    with record_function("## optimizer ##"):
        state.optimizer.step()
    return prediction


def sync_when_due(state: TrainState) -> None:
    """Average the replicas of the tables every ``replicas.sync_interval`` steps."""
    if state.sync_replicas is not None and (state.step + 1) % state.config.replicas.sync_interval == 0:
        state.sync_replicas()
