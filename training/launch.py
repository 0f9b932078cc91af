"""Start a run's processes on this machine through torchrun, on a free port."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence


def launch(processes: int, arguments: Sequence[str]) -> int:
    """Run ``python -m training`` with ``arguments`` in ``processes`` ranks; return torchrun's exit status.

    torchrun picks a free port itself (port 0) and ends the other ranks when one fails.
    """
    command = [sys.executable, "-m", "torch.distributed.run"]
    command += [
        "--nproc-per-node",
        str(processes),
        "--rdzv-backend",
        "c10d",
        "--rdzv-endpoint",
        "127.0.0.1:0",
    ]
    command += ["--local-addr", "127.0.0.1", "--max-restarts", "0", "-m", "training", *arguments]
    # Several ranks share the cores: one thread each, or they slow each other down. 99 silences Kineto's start
    # and stop lines, which no lower level does.
    environment = {"OMP_NUM_THREADS": "1", "KINETO_LOG_LEVEL": "99", **os.environ}
    return subprocess.run(command, env=environment, check=False).returncode
