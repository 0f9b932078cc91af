"""Which steps are profiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Schedule:
    """``wait`` + ``warmup`` + ``active`` steps, ``repeat`` times, counted from ``first_step`` on."""

    wait: int
    warmup: int
    active: int
    repeat: int = 1
    first_step: int = 0

    def for_profiler(self, window_start: int) -> Callable[[int], Any]:
        """Return one window as torch's profiler wants it, for step numbers that start at ``window_start``."""
        scheduled = torch.profiler.schedule(wait=0, warmup=self.warmup, active=self.active, repeat=1)
        # The profiler asks for step 0 before it is told where to start.
        return lambda step: scheduled(max(0, step - window_start))

    def opens(self, step: int) -> bool:
        """Whether the profiler is to be started for ``step``: the first one behind the waiting."""
        window, position = self._place(step)
        return 0 <= window < self.repeat and position == self.wait

    def closes(self, step: int) -> bool:
        """Whether ``step`` is the first one behind a window."""
        window, position = self._place(step)
        return window >= 1 and position == 0

    def profiles(self, step: int) -> bool:
        """Whether ``step`` ends up in a trace."""
        window, position = self._place(step)
        return 0 <= window < self.repeat and position >= self.wait + self.warmup

    def _place(self, step: int) -> tuple[int, int]:
        """Return (number of the round of waiting, warming up and recording, position in it)."""
        return divmod(step - self.first_step, self.wait + self.warmup + self.active)

    def describe(self) -> dict[str, int]:
        """Return the fields for ``run.json``."""
        return asdict(self)
