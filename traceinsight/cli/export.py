"""``traceinsight export``: all ranks in one file for the Perfetto viewer."""

from __future__ import annotations

import gzip
import io
import os
from pathlib import Path
from typing import Annotated

import typer

from traceinsight.base.errors import UsageError
from traceinsight.cli.messages import print_note
from traceinsight.cli.options import Force, Quiet, RankRegex, RunNumber, Traces, Workers
from traceinsight.cli.progress import reading_progress
from traceinsight.cli.stdout import check_target

_ENDING = ".json.gz"
_FAST = 3  # zlib level: twice the speed of the default for a file that is a tenth larger


def export(
    traces: Traces,
    output: Annotated[
        Path,
        typer.Option(
            "--output", "-o", metavar="FILE",
            help="Write to FILE, which ends in .json.gz. An existing file is kept.",
            show_default=False, rich_help_panel="Result",
        ),
    ],
    force: Force = False,
    run: RunNumber = None,
    rank_regex: RankRegex = None,
    workers: Workers = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Write all ranks into one trace, on aligned clocks, for ui.perfetto.dev.

    Every rank is a process; waits for late ranks, the analysed steps and the
    findings are tracks of their own.

    [bold]Example[/bold]

      traceinsight export traces/ -o all.json.gz
    """
    if not output.name.lower().endswith(_ENDING):
        raise UsageError(
            "the output is a compressed trace.", where=str(output), what_to_do=f"End its name in {_ENDING}."
        )
    check_target(output, force=force, inputs=traces)
    from traceinsight import api  # noqa: PLC0415 - numpy and the analyses, which --help does not need
    from traceinsight.export import write_chrome_trace  # noqa: PLC0415 - likewise

    with reading_progress(quiet=quiet) as progress:
        loaded = api.load(traces, run=run, rank_regex=rank_regex, workers=workers, progress=progress)
    diagnosis = api.diagnose(loaded)
    temporary = output.with_name(f".{output.name}.{os.getpid()}.tmp")
    try:
        # No time stamp and no name in the header: the same traces give the same bytes.
        with (
            temporary.open("wb") as raw,
            gzip.GzipFile("", "wb", _FAST, raw, mtime=0) as packed,
            io.TextIOWrapper(packed, encoding="ascii") as sink,
        ):
            write_chrome_trace(loaded.trace_set, diagnosis, sink)
        temporary.replace(output)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot write the output: {reason}.", where=str(output)) from error
    finally:
        temporary.unlink(missing_ok=True)
    if not quiet:
        print_note(f"Wrote {output}: open it at ui.perfetto.dev.")
