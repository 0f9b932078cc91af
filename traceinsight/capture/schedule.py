"""Which steps are profiled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

_LEAST = {"wait": 0, "warmup": 0, "active": 1, "repeat": 1, "first_step": 0}


@dataclass(frozen=True)
class Schedule:
    """``wait`` + ``warmup`` + ``active`` steps, ``repeat`` times, counted from ``first_step`` on."""

    wait: int
    warmup: int
    active: int
    repeat: int = 1
    first_step: int = 0

    def __post_init__(self) -> None:
        """Raise ValueError, or TypeError, where the numbers would profile nothing."""
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name}={value!r}: it is a whole number of steps, {least} or more")
            if value < least:
                raise ValueError(f"{name}={value}: it must be {least} or more")

    @property
    def first_profiled(self) -> int:
        """The first step that ends up in a trace."""
        return self.first_step + self.wait + self.warmup

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

    def shortfall(self, next_step: int) -> str | None:
        """Return what is missing of the traces if training ends before ``next_step``; None if nothing is."""
        done = next_step - self.first_profiled
        if done < 0:
            return (
                f"no step was profiled: training ended before step {self.first_profiled}, the first after "
                f"wait={self.wait} and warmup={self.warmup}; use a smaller wait"
            )
        if done < self.active:
            return f"the trace holds {done} of {self.active} steps: training ended inside the window"
        windows, _ = self._place(next_step)
        if windows < self.repeat:
            return f"{windows} of {self.repeat} windows were profiled to their end: training ended before"
        return None

    def describe(self) -> dict[str, int]:
        """Return the fields for ``run.json``."""
        return asdict(self)
