"""The one place where errors become messages and exit codes."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Sequence

from traceinsight.base.errors import TraceInsightError
from traceinsight.cli.app import Stopped, app
from traceinsight.cli.messages import print_error
from traceinsight.cli.stdout import abandon_stdout, flush_stdout

DEBUG_VARIABLE = "TRACEINSIGHT_DEBUG"
OUR_BUG = 1
INTERRUPTED = 130
"""128 + SIGINT, what a shell expects of a program that was stopped by Ctrl-C."""


_ENVIRONMENT = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.ENOMEM}
"""What no program can help: a full disk, a broken one."""


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the app; never raises."""
    code = _run(arguments)
    try:
        flush_stdout()  # here, since the interpreter answers a failure at exit with a traceback
    except TraceInsightError as error:
        print_error(error.what, where=error.where, what_to_do=error.what_to_do)
        code = code or error.exit_code
    return code


def _run(arguments: Sequence[str] | None) -> int:
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
        if isinstance(error, OSError) and error.errno in _ENVIRONMENT:
            print_error(f"the system refused: {error.strerror}.", where=error.filename)
            abandon_stdout()
            return TraceInsightError.exit_code
        print_error(
            f"traceinsight failed: {type(error).__name__}: {error}",
            what_to_do=f"This is a bug in traceinsight; please report it with what {DEBUG_VARIABLE}=1 adds.",
        )
        return OUR_BUG
    return 0


def _debug() -> None:
    if os.environ.get(DEBUG_VARIABLE, "") not in {"", "0"}:
        traceback.print_exc(file=sys.stderr)
