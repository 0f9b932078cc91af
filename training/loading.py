"""Batches for one rank, made here or by background processes, from any position on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

from training.config import Config
from training.data import Batch, ClickStream
from training.faults import Fault


class _Batches(Dataset[Batch]):
    """Batch n of the stream, as the DataLoader's workers want it."""

    def __init__(self, stream: ClickStream) -> None:
        self._stream = stream

    def __getitem__(self, index: int) -> Batch:
        return self._stream.batch(index)


def batches(config: Config, rank: int, first: int, fault: Fault) -> Iterator[Batch]:
    """Yield batches ``first`` to ``loop.steps - 1`` of ``rank``, each inside ``## load_batch ##``."""
    data = config.data
    background: dict[str, Any] = {"prefetch_factor": data.prefetch} if data.workers else {}
    loader = DataLoader(
        _Batches(ClickStream(config, rank)),
        batch_size=None,
        sampler=range(first, config.loop.steps),  # in order, so that a resumed run sees what is left
        num_workers=data.workers,
        pin_memory=data.pin_memory,
        **background,
    )
    made = iter(loader)
    while True:
        with record_function("## load_batch ##"):
            fault.while_loading()
            batch = next(made, None)
        if batch is None:
            return
        yield batch
