"""The click stream and how it is loaded."""

from __future__ import annotations

from dataclasses import dataclass

from training.config.checks import require


@dataclass(frozen=True)
class DataConfig:
    """The synthetic click stream."""

    batch_per_rank: int = 256
    pooling: int = 8
    """Mean number of ids per example and table."""
    zipf_exponent: float = 1.05
    """0 draws ids evenly; 1 and above makes a few ids take most lookups."""
    vocabulary: int = 0
    """Distinct ids per table; 0: as many as ``model.rows``. Ids beyond the rows share them (modulo)."""
    seed: int = 7
    workers: int = 0
    """Processes that make batches in the background; 0 makes them in the training process."""
    prefetch: int = 2
    """Batches each worker keeps ready."""
    pin_memory: bool = False
    """Keep batches in page-locked memory, from which a copy to the GPU is asynchronous."""

    def __post_init__(self) -> None:
        require(self.batch_per_rank >= 1, "data.batch_per_rank", self.batch_per_rank, "at least 1")
        require(self.pooling >= 1, "data.pooling", self.pooling, "at least 1")
        require(0 <= self.zipf_exponent <= 4, "data.zipf_exponent", self.zipf_exponent, "between 0 and 4")
        require(self.vocabulary >= 0, "data.vocabulary", self.vocabulary, "0 (as many as rows) or more")
        require(self.workers >= 0, "data.workers", self.workers, "0 or more")
        require(self.prefetch >= 1, "data.prefetch", self.prefetch, "at least 1")
