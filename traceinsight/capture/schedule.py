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

    def for_profiler(self) -> Callable[[int], Any]:
        """Return the schedule as torch's profiler wants it, for step numbers that start at ``first_step``."""
        scheduled = torch.profiler.schedule(
            wait=self.wait, warmup=self.warmup, active=self.active, repeat=self.repeat
        )
        # The profiler asks for step 0 before it is told where to start.
        return lambda step: scheduled(max(0, step - self.first_step))

    def profiles(self, step: int) -> bool:
        """Whether ``step`` ends up in a trace."""
        length = self.wait + self.warmup + self.active
        window, position = divmod(step - self.first_step, length)
        return 0 <= window < self.repeat and position >= self.wait + self.warmup

    def describe(self) -> dict[str, int]:
        """Return the fields for ``run.json``."""
        return asdict(self)
