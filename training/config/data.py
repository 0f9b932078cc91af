"""The click stream and how it is loaded."""

from __future__ import annotations

from dataclasses import dataclass

from training.config.checks import check_fields, number
from training.config.model import MOST_ROWS


@dataclass(frozen=True)
class DataConfig:
    """The synthetic click stream."""

    batch_per_rank: int = number(256, 1, 10_000_000)
    pooling: int = number(8, 1, 100_000)
    """Mean number of ids per example and table."""
    zipf_exponent: float = number(1.05, 0, 4)
    """0 draws ids evenly; 1 and above makes a few ids take most lookups."""
    vocabulary: int = number(0, 0, MOST_ROWS)
    """Distinct ids per table; 0: as many as ``model.rows``. Ids beyond the rows share them (modulo)."""
    seed: int = number(7, 0, 2**31 - 1)
    """Of the initial weights, the planted model and the clicks."""
    workers: int = number(0, 0, 1_000)
    """Processes that make batches in the background; 0 makes them in the training process."""
    prefetch: int = number(2, 1, 10_000)
    """Batches each worker keeps ready."""
    pin_memory: bool = False
    """Keep batches in page-locked memory, from which a copy to the GPU is asynchronous."""

    def __post_init__(self) -> None:
        check_fields(self, "data")
