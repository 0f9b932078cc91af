"""What happens around steps beside training: checkpoints, and stopping when a signal asks for it."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Protocol

from training.config import Config
from training.state import TrainState


class Hooks(Protocol):
    """Called by every rank at the same places of ``training.loop.train``."""

    def resume(self, state: TrainState) -> None:
        """Put an earlier state into ``state``, before the first step."""

    def on_step_end(self, state: TrainState) -> None:
        """Look at ``state`` after a step; ``state.stop_agreed`` says that it was the last."""

    def on_end(self, state: TrainState) -> None:
        """Look at ``state`` after the last step."""


class NoHooks:
    """Nothing beside training."""

    def resume(self, state: TrainState) -> None:
        """Start from the beginning."""

    def on_step_end(self, state: TrainState) -> None:
        """Do nothing."""

    def on_end(self, state: TrainState) -> None:
        """Do nothing."""


def make_hooks(config: Config) -> Hooks:  # noqa: ARG001  checkpoints are chosen here
    """Return the hooks that ``config`` asks for."""
    return NoHooks()


def stop_on_sigterm(state: TrainState) -> None:
    """Let SIGTERM set ``state.stop_asked``: the ranks agree at the end of the window and stop together."""

    def ask(_signal: int, _frame: FrameType | None) -> None:
        state.stop_asked = True

    signal.signal(signal.SIGTERM, ask)
