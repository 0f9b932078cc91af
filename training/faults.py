"""Faults put in on purpose.

Each one measures what it really cost, which is the ground truth of an analysis.
"""

from __future__ import annotations

import time

import torch

from training.config import FaultConfig
from training.emulation import emulated_compute


class Fault:
    """No fault; also the interface of the others."""

    def __init__(self) -> None:
        self.measured_ms: list[float] = []
        """What the fault cost this rank, one value per step, in milliseconds."""

    def before_forward(self, anchor: torch.Tensor) -> None:
        """Run before this rank's first embedding exchange of a step."""


class LateRank(Fault):
    """One rank reaches the embedding exchange late in every step, as if its own work took longer."""

    def __init__(self, delay_ms: float) -> None:
        super().__init__()
        self._delay_ms = delay_ms

    def before_forward(self, anchor: torch.Tensor) -> None:
        """Occupy the rank for the configured time."""
        begin = time.perf_counter()
        emulated_compute(anchor, self._delay_ms)
        self.measured_ms.append((time.perf_counter() - begin) * 1000)


def make_fault(config: FaultConfig, rank: int) -> Fault:
    """Return what ``rank`` suffers under ``config``."""
    if config.kind == "late_rank" and rank == config.rank:
        return LateRank(config.delay_ms)
    return Fault()


def ground_truth(config: FaultConfig, measured_ms: list[list[float]]) -> list[dict[str, object]]:
    """Describe the injected faults for ``run.json``.

    ``measured_ms`` holds one list of step costs per rank.
    """
    if config.kind == "none":
        return []
    return [
        {
            "kind": config.kind,
            "rank": config.rank,
            "where": "forward, before the embedding exchange",
            "configured_ms_per_step": config.delay_ms,
            "measured_ms_per_step": [round(value, 3) for value in measured_ms[config.rank]],
        }
    ]
