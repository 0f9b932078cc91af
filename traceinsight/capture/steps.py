"""What was measured in each step."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from traceinsight.capture.values import keep, read

KEPT_STEPS = 10_000
"""Latest steps whose measurements stand in run.json: about 1 MB of JSON, however long the job runs."""


class StepLog:
    """Times, examples and numbers of the latest steps. Only ``describe`` waits for a device."""

    def __init__(self, world_size: int, left_out: Callable[[str, str], None]) -> None:
        """``left_out`` is called with the name of a number that cannot be kept, and why."""
        self._world_size = world_size
        self._left_out = left_out
        self._steps: dict[int, tuple[int, Any]] = {}  # step -> (nanoseconds, examples)
        self._numbers: dict[int, dict[str, Any]] = {}  # step -> what was measured in it

    def __contains__(self, step: object) -> bool:
        return step in self._steps

    def end(self, step: int, duration_ns: int, examples: Any) -> None:
        """File a step that has ended."""
        if type(examples) is not int and examples is not None:
            examples = self._kept("examples", examples)
        self._steps[step] = (duration_ns, examples)
        if len(self._steps) > KEPT_STEPS:
            oldest = next(iter(self._steps))
            del self._steps[oldest]
            self._numbers.pop(oldest, None)

    def add(self, step: int, values: Mapping[str, Any]) -> None:
        """Add numbers to a step."""
        kept = self._numbers.setdefault(step, {})
        for name, value in values.items():
            kept[name] = self._kept(name, value)

    def _kept(self, name: str, value: Any) -> Any:
        try:
            return keep(value)
        except Exception as error:  # whatever reading a foreign object raises
            self._left_out(name, str(error))
            return None

    def describe(self) -> list[dict[str, object]]:
        """Return the fields for ``run.json``. NaN and infinities become None: a loss may blow up."""
        return [self._describe(step, *timed) for step, timed in self._steps.items()]

    def _describe(self, step: int, duration_ns: int, examples: Any) -> dict[str, object]:
        numbers = self._numbers.get(step, {})
        for name, value in numbers.items():
            numbers[name] = self._finite(name, value)  # kept as read: a tensor is read once and let go
        count, seconds = self._finite("examples", examples), duration_ns / 1e9
        rate = None if count is None or not seconds else round(count * self._world_size / seconds, 3)
        timed = {"step": step, "wall_ms": round(seconds * 1e3, 3), "examples_per_s": rate}
        return {**timed, **numbers, **timed}

    def _finite(self, name: str, value: Any) -> Any:
        try:
            number = None if value is None else read(value)
            return number if number is not None and math.isfinite(number) else None
        except Exception as error:  # a device that has failed since
            self._left_out(name, str(error))
            return None
