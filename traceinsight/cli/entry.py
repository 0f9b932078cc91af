"""The one place where errors become messages and exit codes."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Sequence

from traceinsight.base.errors import TraceInsightError
from traceinsight.cli.app import Stopped, app
from traceinsight.cli.messages import print_error

DEBUG_VARIABLE = "TRACEINSIGHT_DEBUG"
OUR_BUG = 1
INTERRUPTED = 130
"""128 + SIGINT, what a shell expects of a program that was stopped by Ctrl-C."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the app; never raises."""
    try:
        app(args=list(arguments) if arguments is not None else None, prog_name="traceinsight")
    except SystemExit as done:  # how typer ends: 0, or 2 after it printed what is wrong with the call
        return done.code if isinstance(done.code, int) else int(bool(done.code))
    except TraceInsightError as error:
        _debug()
        print_error(error.what, where=error.where, what_to_do=error.what_to_do)
        return error.exit_code
    except (KeyboardInterrupt, Stopped):
        print_error("Stopped.")
        return INTERRUPTED
    except Exception as error:
        _debug()
        print_error(
            f"traceinsight failed: {type(error).__name__}: {error}",
            what_to_do=f"This is a bug in traceinsight; please report it with what {DEBUG_VARIABLE}=1 adds.",
        )
        return OUR_BUG
    return 0


def _debug() -> None:
    if os.environ.get(DEBUG_VARIABLE, "") not in {"", "0"}:
        traceback.print_exc(file=sys.stderr)
