"""What takes part in the loop beside training: checkpoints, and a stop that all ranks make together."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType

from training.checkpoint import Checkpointer
from training.config import as_dict
from training.state import TrainState


def checkpointer(state: TrainState) -> Checkpointer:
    """Return what saves and restores this run, as ``config.checkpoint`` says. Collective."""
    wanted = state.config.checkpoint
    return Checkpointer(
        state.model,
        state.optimizer,
        folder=Path(wanted.folder) if wanted.folder else None,
        every=wanted.every,
        keep=wanted.keep,
        last_step=state.config.loop.steps,
        start_from=Path(wanted.start_from) if wanted.start_from else None,
        about={"config": as_dict(state.config)},
        before_save=state.sync_replicas,
    )


def stop_on_sigterm(state: TrainState) -> None:
    """Let SIGTERM set ``state.stop_asked``: ranks agree at the end of the window and stop after one step.

    Also what keeps a rank alive long enough to say why it ends: torchrun sends SIGTERM to all others when
    one is gone. A run with checkpoints asks in every step instead (``checkpoint_stop``).
    """

    def ask(_signal: int, _frame: FrameType | None) -> None:
        state.stop_asked = True

    signal.signal(signal.SIGTERM, ask)
