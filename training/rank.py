"""One rank from the process group to its exit status, and what it says when something goes wrong."""

from __future__ import annotations

import datetime
import logging
import os
import sys
import warnings
from pathlib import Path

import torch
import torch.distributed as dist

from training import doctor, run_folder
from training.checkpoint_blocks import CheckpointError
from training.config import Config, ConfigError
from training.loop import train
from training.metrics import LossNotFiniteError
from training.state import TrainState

FAILED, WRONG_CONFIG, NOT_FINITE, NO_CHECKPOINT = 1, 2, 3, 4


def run_rank(config: Config, traces: Path) -> int:
    """Train as the rank that the environment says; return the exit status."""
    _quiet_known_warnings()
    rank = int(os.environ["RANK"])
    try:
        _join(config)
        if rank == 0:
            doctor.warn()
        ending = _ending(train(config, traces), traces)
    except ConfigError as error:
        return _say(rank, f"error: {error}", WRONG_CONFIG)
    except CheckpointError as error:  # raised by all ranks alike
        return _say(rank, f"error: {error}", NO_CHECKPOINT)
    except LossNotFiniteError as error:
        return _say(rank, f"error: {error}. {run_folder.what_is_left(traces)}", NOT_FINITE)
    except (RuntimeError, OSError) as error:
        reason = _known_reason(error)
        if reason is None:
            raise
        message = f"error: rank {rank} stops: {reason}. {run_folder.what_is_left(traces)}"
        return _say(rank, message, FAILED, every_rank=True)
    if rank == 0:
        print(f"{config.name}: {ending}")
    dist.destroy_process_group()
    return 0


def _ending(state: TrainState, traces: Path) -> str:
    """Say what became of a run that did not fail. Collective."""
    if state.step == state.first_step:
        return f"already finished after {state.step} steps, nothing to do; to go on, raise loop.steps"
    curve = state.metrics.curve
    how = "stopped as asked after" if state.stop_agreed else "done:"
    change = f"loss {curve[0].loss:.4f} -> {curve[-1].loss:.4f}"
    return f"{how} {state.step} steps, {change}, {run_folder.what_is_there(state, traces)}"


def _say(rank: int, message: str, status: int, *, every_rank: bool = False) -> int:
    if rank == 0 or every_rank:
        print(message, file=sys.stderr)
    return status


def _join(config: Config) -> None:
    """Enter the default process group. Raises ConfigError when the rendezvous port is taken."""
    backend = "gloo"
    if config.device == "cuda":
        if not torch.cuda.is_available():
            raise ConfigError("device = 'cuda' is not allowed here: it must be cpu, there is no GPU")
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        backend = "nccl"
    else:
        torch.set_num_threads(1)
    timeout = datetime.timedelta(seconds=config.loop.timeout_s)
    if not os.environ.get("MASTER_ADDR"):
        raise ConfigError("MASTER_ADDR is not set: start the run with torchrun, which sets it")
    try:
        dist.init_process_group(backend, timeout=timeout)
    except dist.DistNetworkError as error:
        if "EADDRINUSE" not in str(error):
            raise
        address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        raise ConfigError(
            f"the port of {address} is in use: choose another (torchrun --master-port), or let torchrun "
            "choose one (--rdzv-backend c10d --rdzv-endpoint HOST:0)"
        ) from None


def _known_reason(error: Exception) -> str | None:
    """Return what happened where the fault is not in this process's program, else None."""
    text = _first_line(error).partition(". This is typically")[0]  # gloo's advice is about itself
    if text.startswith("DataLoader worker"):
        return (
            f"one of its data-loader workers was killed ({text}). Often the memory was full: "
            "lower data.workers or data.prefetch"
        )
    words = ("Connection closed by peer", "Connection reset", "Broken pipe", "timed out", "Timed out")
    if isinstance(error, dist.DistError) or any(word in str(error) for word in words):
        return f"another rank is gone ({text}); the first rank that failed says why"
    return None


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def _quiet_known_warnings() -> None:
    """Silence what TorchRec and PyTorch say about each other's internals.

    Once per rank it hides the run's own lines.
    """
    for name in ("torchrec", "torch.fx._symbolic_trace"):  # dry-run estimates; is_fx_tracing
        logging.getLogger(name).setLevel(logging.ERROR)
    warnings.filterwarnings(
        "ignore", "HeuristicalStorageReservation", FutureWarning
    )  # TorchRec's own default
    warnings.filterwarnings(
        "ignore", "`broadcast_buffers` is deprecated", FutureWarning
    )  # TorchRec's call of DDP
