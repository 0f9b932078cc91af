"""Which signals ask a run to stop, and what a process does before it can stop in order."""

from __future__ import annotations

import signal

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
"""What asks a run to save and stop: a scheduler, Ctrl-C, a terminal that is closed."""


def die_of_interrupt() -> None:
    """Let SIGINT end this process without a traceback, until there is something to save.

    Where it is ignored (a background job of a script) it stays so.
    """
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
