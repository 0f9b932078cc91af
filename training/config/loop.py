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
    """Where and how often the state of training is kept."""

    folder: str = ""
    """Shared by all ranks; empty: nothing is saved."""
    every_steps: int = 0
    """Steps between checkpoints; 0: only when training is asked to stop (SIGTERM) and at its end."""
    keep: int = 2
    """Latest checkpoints that are kept."""
    resume: bool = True
    """Start from the latest loadable checkpoint of ``folder``."""
    start_from: str = ""
    """A checkpoint of another run, whose parameters a fresh run begins with (fine-tuning)."""

    def __post_init__(self) -> None:
        require(self.every_steps >= 0, "checkpoint.every_steps", self.every_steps, "0 or more")
        require(self.keep >= 1, "checkpoint.keep", self.keep, "at least 1")
        require(
            bool(self.folder) or not self.every_steps,
            "checkpoint.every_steps",
            self.every_steps,
            "0 unless checkpoint.folder is set",
        )
