"""Steps, learning rates, the profiled window and checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

from training.config.checks import require


@dataclass(frozen=True)
class LoopConfig:
    """Steps, learning rates and the profiled window."""

    steps: int = 30
    embedding_lr: float = 0.02
    dense_lr: float = 0.02
    window: int = 10
    """Steps after which losses are read, averaged over ranks and checked, and a stop is agreed. Reading them
    every step would make the host wait for the device in every step."""
    wait: int = 10
    """Steps before the profiler is switched on."""
    warmup: int = 3
    """Steps recorded and thrown away, so that the profiler's own start-up is not in the trace."""
    active: int = 5
    """Steps that end up in the trace."""
    repeat: int = 1
    """How often wait, warmup and active follow each other, with a trace each."""
    measure_tables: bool = False
    """Count ids and bytes per table and rank in the profiled steps."""
    timeout_s: int = 300
    """Seconds after which a collective whose peer is gone gives up."""

    def __post_init__(self) -> None:
        require(self.embedding_lr > 0, "loop.embedding_lr", self.embedding_lr, "above 0")
        require(self.dense_lr > 0, "loop.dense_lr", self.dense_lr, "above 0")
        require(self.wait >= 0, "loop.wait", self.wait, "0 or more")
        require(self.warmup >= 0, "loop.warmup", self.warmup, "0 or more")
        for name in ("steps", "window", "active", "repeat", "timeout_s"):
            require(getattr(self, name) >= 1, f"loop.{name}", getattr(self, name), "at least 1")


@dataclass(frozen=True)
class CheckpointConfig:
    """Where the state of the run is kept, and how often."""

    folder: str = ""
    """Shared by all ranks. Empty: nothing is saved."""
    every: int = 0
    """Steps between two checkpoints; 0 saves on SIGTERM and after the last step only."""
    keep: int = 3
    """Newest checkpoints that are kept."""
    start_from: str = ""
    """A checkpoint whose state a fresh run begins with, e.g. for fine-tuning."""

    def __post_init__(self) -> None:
        require(self.every >= 0, "checkpoint.every", self.every, "0 or more steps")
        require(self.keep >= 1, "checkpoint.keep", self.keep, "at least 1")
        require(
            bool(self.folder) or not self.every,
            "checkpoint.every",
            self.every,
            "0 unless checkpoint.folder is set",
        )
