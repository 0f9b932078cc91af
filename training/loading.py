"""Batches for one rank, made here or by background processes, from any position on."""

from __future__ import annotations

import ctypes
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch.profiler import record_function
from torch.utils.data import DataLoader, Dataset

from training.config import Config
from training.data import Batch, ClickStream
from training.faults import Fault
from training.stopping import STOP_SIGNALS

_PR_SET_PDEATHSIG = 1
"""Of linux/prctl.h."""


class _Batches(Dataset[Batch]):
    """Batch n of the stream, as the DataLoader's workers want it."""

    def __init__(self, stream: ClickStream) -> None:
        self._stream = stream

    def __getitem__(self, index: int) -> Batch:
        return self._stream.batch(index)


@contextmanager
def _deaf_children() -> Iterator[None]:
    """Let processes started inside never hear a stop signal: they inherit the mask and keep it.

    torchrun signals a rank's whole process group. A stop is the rank's to make, after the window it is in,
    and until then it needs its batches.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, STOP_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _end_with_rank(_worker: int) -> None:
    """Let the kernel end this worker when its rank is gone, however that ended (Linux).

    Elsewhere the worker notices within seconds, and complains on the way.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def batches(config: Config, rank: int, first: int, fault: Fault) -> Iterator[Batch]:
    """Yield batches ``first`` to ``loop.steps - 1`` of ``rank``, each inside ``## load_batch ##``."""
    data = config.data
    background: dict[str, Any] = {}
    if data.workers:
        background = {"prefetch_factor": data.prefetch, "worker_init_fn": _end_with_rank}
    loader = DataLoader(
        _Batches(ClickStream(config, rank)),
        batch_size=None,
        sampler=range(first, config.loop.steps),  # in order, so that a resumed run sees what is left
        num_workers=data.workers,
        pin_memory=data.pin_memory,
        **background,
    )
    with _deaf_children():
        made = iter(loader)
    while True:
        with record_function("## load_batch ##"):
            fault.while_loading()
            batch = next(made, None)
        if batch is None:
            return
        yield batch
