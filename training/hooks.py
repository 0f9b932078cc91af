"""What takes part in the loop beside training: checkpoints, and a stop that all ranks make together."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import FrameType
from typing import Protocol

from training.config import Config, as_dict
from training.state import TrainState
from training.stopping import STOP_SIGNALS


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


def make_hooks(config: Config) -> Hooks:
    """Return the hooks that ``config`` asks for. Collective."""
    wanted = config.checkpoint
    if not wanted.folder and not wanted.start_from:
        return NoHooks()
    from training.checkpoint import Checkpoints, Policy  # noqa: PLC0415  a run without them needs none of it

    policy = Policy(
        folder=Path(wanted.folder) if wanted.folder else None,
        every_steps=wanted.every_steps,
        keep=wanted.keep,
        resume=wanted.resume,
        start_from=Path(wanted.start_from) if wanted.start_from else None,
    )
    return Checkpoints(policy, about={"config": as_dict(config)})


def stop_on_signal(state: TrainState) -> None:
    """Let a stop signal set ``state.stop_asked``: the ranks agree at the end of the window and stop together.

    Also what keeps a rank alive long enough to say why it ends: torchrun sends SIGTERM to all others when
    one is gone. Schedulers repeat SIGTERM, which changes nothing. Whoever presses Ctrl-C and then again does
    not want to wait: any signal after SIGINT ends the rank at once.
    """
    interrupted = False

    def ask(number: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        if interrupted:
            os._exit(128 + signal.SIGINT)
        interrupted = number == signal.SIGINT
        state.stop_asked = True

    for number in STOP_SIGNALS:
        signal.signal(number, ask)
