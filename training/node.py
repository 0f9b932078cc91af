"""``python -m training.node``: torchrun, ending with what the run said and a status that says as much.

Takes torchrun's arguments and runs the ranks of this node. torchrun itself ends every run that did not
finish with a traceback of its own, below the one line that matters, and with status 1.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
from collections.abc import Mapping, Sequence

from training.launch import STOP_S
from training.stopping import STOP_SIGNALS, die_of_interrupt

FAILED, PORT_IN_USE = 1, 2
SAID_BY_RANKS = (2, 3, 4)
"""Statuses of a rank that has said all there is to say (``training.__main__.main`` lists them)."""
_SAID_BETTER = ("Received %s death signal", "Sending process %s closing", "failed (exitcode: %s)")
"""Beginnings of torchrun's log lines about what is said here, or is as it should be."""


def main(arguments: Sequence[str]) -> int:
    """Return 0, the status of the ranks, or 128 + the signal that stopped them, as a shell would."""
    die_of_interrupt()
    os.environ.setdefault("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", str(STOP_S))
    # Seconds of importing, after which an interrupt is torchrun's to handle.
    from torch.distributed import DistError, run  # noqa: PLC0415
    from torch.distributed.elastic.multiprocessing import SignalException, errors  # noqa: PLC0415
    from torch.distributed.elastic.rendezvous import RendezvousError  # noqa: PLC0415

    for module in ("agent.server.api", "multiprocessing.api"):
        logging.getLogger(f"torch.distributed.elastic.{module}").addFilter(_is_news)
    options = run.parse_args(list(arguments))
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # nohup: torchrun would hear it nevertheless
        options.signals_to_handle = options.signals_to_handle.replace("SIGHUP,", "")
    try:
        run.run(options)
    except errors.ChildFailedError as error:
        return _after_failure({rank: failure.exitcode for rank, failure in error.failures.items()})
    except SignalException as error:
        _wait_for_ranks()
        return _say(f"stopped by {error.sigval.name}", 128 + error.sigval)
    except (DistError, RendezvousError) as error:
        place = options.rdzv_endpoint or f"{options.master_addr}:{options.master_port}"
        if "EADDRINUSE" in str(error):
            return _say(f"error: the port of {place} is in use: choose another (MASTER_PORT)", PORT_IN_USE)
        return _say(f"error: the nodes did not meet at {place}: {str(error).splitlines()[0]}", FAILED)
    return 0


def _after_failure(statuses: Mapping[int, int]) -> int:
    for known in SAID_BY_RANKS:
        if known in statuses.values():
            return known
    # torchrun ends the others with SIGTERM when one has failed.
    by_itself = {rank: status for rank, status in statuses.items() if status != -signal.SIGTERM} or statuses
    told = "; ".join(f"rank {rank} {_ending(status)}" for rank, status in sorted(by_itself.items()))
    return _say(f"error: {told}. What they said stands above", FAILED)


def _ending(status: int) -> str:
    if status >= 0:
        return f"ended with status {status}"
    why = " (often: the memory was full)" if status == -signal.SIGKILL else ""
    return f"was killed by {signal.Signals(-status).name}{why}"


def _wait_for_ranks() -> None:
    """Stay until the ranks are gone: a signal that is repeated ends torchrun's own waiting."""
    for number in STOP_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()


def _is_news(record: logging.LogRecord) -> bool:
    return not str(record.msg).startswith(_SAID_BETTER)


def _say(message: str, status: int) -> int:
    print(message, file=sys.stderr, flush=True)
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
