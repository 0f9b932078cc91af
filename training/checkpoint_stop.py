"""SIGTERM as a request to save and stop, agreed by all ranks."""

from __future__ import annotations

import signal
import threading
from types import FrameType

import torch
import torch.distributed as dist


class StopRequest:
    """Whether any rank got SIGTERM; every rank learns it at the same step.

    A preempted node is told alone, and a rank that stopped for itself would leave the others waiting in
    their next collective. So each step starts the sum of one number and reads the sum of the step before,
    which has arrived by then and costs no waiting.
    """

    def __init__(self, group: dist.ProcessGroup) -> None:
        self._group = group
        self._signalled = False
        self._pending: tuple[dist.Work, torch.Tensor] | None = None
        # Python delivers signals to the main thread alone and lets no other thread ask for them.
        self._owns_signal = threading.current_thread() is threading.main_thread()
        if self._owns_signal:
            self._previous = signal.signal(signal.SIGTERM, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        # A second SIGTERM changes nothing: a launcher and a scheduler often send one each.
        self._signalled = True

    def agreed(self) -> bool:
        """Return whether a rank had been signalled by the end of the previous step. All ranks call it."""
        stop = self._read()
        flag = torch.tensor([int(self._signalled)])
        self._pending = (dist.all_reduce(flag, group=self._group, async_op=True), flag)
        return stop

    def close(self) -> None:
        """Finish the exchange that is under way and give SIGTERM its earlier meaning. All ranks call it."""
        self._read()
        if self._owns_signal:
            signal.signal(signal.SIGTERM, self._previous)

    def _read(self) -> bool:
        if self._pending is None:
            return False
        work, flag = self._pending
        self._pending = None
        work.wait()
        return bool(flag.item())
