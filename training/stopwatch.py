"""How long something took in every step, by the clock of what does it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch


class Stopwatch:
    """Sums what is timed within a step.

    On a GPU the host only queues the work, and a host's clock would show the queueing. There two events of
    the current stream are the clock, read when the run is over, so that no step waits for them.
    """

    def __init__(self) -> None:
        self._steps: list[list[Callable[[], float]]] = []
        self._open: list[Callable[[], float]] = []
        self._stop: Callable[[], Callable[[], float]] | None = None

    def begin(self, device: torch.device) -> None:
        """Start the clock of ``device``."""
        self._stop = _on_stream() if device.type == "cuda" else _on_host()

    def end(self) -> None:
        """Stop it. Without ``begin`` nothing was timed."""
        if self._stop is not None:
            self._open.append(self._stop())
            self._stop = None

    @contextmanager
    def timing(self, device: torch.device) -> Iterator[None]:
        """Time the body of a ``with`` statement."""
        self.begin(device)
        try:
            yield
        finally:
            self.end()

    def end_step(self) -> None:
        """Account for what was timed since the step before."""
        self._steps.append(self._open)
        self._open = []

    def milliseconds(self) -> list[float]:
        """Return the sum of each finished step, 0 where nothing was timed. Waits for the GPU, if any."""
        return [sum(span() for span in step) for step in self._steps]


def _on_host() -> Callable[[], Callable[[], float]]:
    begin = time.perf_counter()

    def stop() -> Callable[[], float]:
        took_ms = (time.perf_counter() - begin) * 1000
        return lambda: took_ms

    return stop


def _on_stream() -> Callable[[], Callable[[], float]]:
    begin = torch.cuda.Event(enable_timing=True)
    begin.record()

    def stop() -> Callable[[], float]:
        end = torch.cuda.Event(enable_timing=True)
        end.record()

        def span() -> float:
            end.synchronize()
            return begin.elapsed_time(end)

        return span

    return stop
