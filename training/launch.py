"""Start a run's processes on this machine through torchrun, on a free port."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from training.config import Config
from training.network import behind_slow_link

STOP_S = 110
"""Seconds between a stop signal and the kill of ranks that have not ended (TORCH_ELASTIC_SHUTDOWN_TIMEOUT).

Ten less than the launch files have from their clusters: what is left is for the traces. torchrun's own 30 are
too short for a window of steps and a large checkpoint.
"""


def torchrun_command(processes: int, arguments: Sequence[str]) -> list[str]:
    """Return the command of ``python -m training`` with ``arguments`` in ``processes`` ranks.

    torchrun picks a free port itself (port 0) and ends the other ranks when one fails.
    """
    command = [sys.executable, "-m", "training.node", "--nproc-per-node", str(processes)]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"]
    return [*command, "--max-restarts", "0", "-m", "training", *arguments]


def rank_environment() -> dict[str, str]:
    """Return the environment of the ranks: this process's, which wins, and what ranks on one machine need.

    Several ranks share the cores: one thread each, or they slow each other down. 99 silences Kineto's start
    and stop lines, which no lower level does.
    """
    return {"OMP_NUM_THREADS": "1", "KINETO_LOG_LEVEL": "99", **os.environ}


def local_command(config: Config, arguments: Sequence[str]) -> list[str]:
    """Return the command that runs all ranks of ``config`` here, behind a slow link if it wants one."""
    command = torchrun_command(config.world_size, arguments)
    return behind_slow_link(command, config.fault.link_mbit) if config.fault.kind == "slow_link" else command


def become(config: Config, arguments: Sequence[str]) -> None:
    """Replace this process by torchrun, so that a signal sent to it reaches the one who ends the ranks."""
    command = local_command(config, arguments)
    os.execvpe(command[0], command, rank_environment())


def launch(config: Config, arguments: Sequence[str]) -> int:
    """Run all ranks to their end and return the exit status."""
    return subprocess.run(local_command(config, arguments), env=rank_environment(), check=False).returncode
