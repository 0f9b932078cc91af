"""Steps, learning rates, the profiled window and checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

from training.config.checks import check_fields, number, require

LARGEST_LR = 3e38
"""Just inside float32; nobody wants it, but it is how a loss that is not finite can be had."""


@dataclass(frozen=True)
class LoopConfig:
    """Steps, learning rates and the profiled window."""

    steps: int = number(30, 1)
    embedding_lr: float = number(0.02, 0, LARGEST_LR, above=True)
    """Learning rate of the tables (row-wise Adagrad)."""
    dense_lr: float = number(0.02, 0, LARGEST_LR, above=True)
    """Learning rate of everything else (Adagrad)."""
    window: int = number(10, 1)
    """Steps after which losses are read, averaged over ranks and checked, and a stop is agreed. Reading them
    every step would make the host wait for the device in every step."""
    wait: int = number(10, 0)
    """Steps before the profiler is switched on."""
    warmup: int = number(3, 0)
    """Steps recorded and thrown away, so that the profiler's own start-up is not in the trace."""
    active: int = number(5, 1)
    """Steps that end up in the trace."""
    repeat: int = number(1, 1)
    """How often wait, warmup and active follow each other, with a trace each."""
    measure_tables: bool = False
    """Count ids and bytes per table and rank in the profiled steps."""
    timeout_s: int = number(300, 1, 7 * 86_400)
    """Seconds after which a collective whose peer is gone gives up."""

    def __post_init__(self) -> None:
        check_fields(self, "loop")


@dataclass(frozen=True)
class CheckpointConfig:
    """Where and how often the state of training is kept."""

    folder: str = ""
    """Shared by all ranks; empty: nothing is saved."""
    every_steps: int = number(0, 0)
    """Steps between checkpoints; 0: only when training is asked to stop (SIGTERM) and at its end."""
    keep: int = number(2, 1)
    """Latest checkpoints that are kept."""
    resume: bool = True
    """Start from the latest loadable checkpoint of ``folder``."""
    start_from: str = ""
    """A checkpoint of another run, whose parameters a fresh run begins with (fine-tuning)."""

    def __post_init__(self) -> None:
        check_fields(self, "checkpoint")
        require(
            bool(self.folder) or not self.every_steps,
            "checkpoint.every_steps",
            self.every_steps,
            "0 unless checkpoint.folder is set",
        )
