"""``traceinsight analyze``: the main job."""

from __future__ import annotations

import os
import shutil
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceinsight.base.errors import UsageError
from traceinsight.cli.messages import print_note
from traceinsight.cli.options import (
    AllRanks,
    Force,
    NoColor,
    Output,
    Quiet,
    RankRegex,
    RunNumber,
    Traces,
    Workers,
)
from traceinsight.cli.progress import reading_progress
from traceinsight.cli.stdout import check_target, require_stdout, write_file, write_stdout

if TYPE_CHECKING:
    from traceinsight.report import ReportOptions

_FILE_WIDTH = 80
_LEAST_WIDTH = 40


class FormatName(StrEnum):
    """The names of ``traceinsight.report.FORMATS``, spelled out so that ``--help`` need not import them."""

    TERMINAL = "terminal"
    JSON = "json"
    MARKDOWN = "markdown"
    HTML = "html"


FormatOption = Annotated[
    FormatName | None,
    typer.Option(
        "--format", "-f",
        help="How to write the result. Default: what the ending of --output says, else terminal.",
        show_default=False, rich_help_panel="Result",
    ),
]  # fmt: skip


def analyze(
    traces: Traces,
    output_format: FormatOption = None,
    output: Output = None,
    force: Force = False,
    all_ranks: AllRanks = False,
    no_color: NoColor = False,
    run: RunNumber = None,
    rank_regex: RankRegex = None,
    workers: Workers = None,
    quiet: Quiet = False,
) -> None:
    """Say what the devices of a training job wait for, and what to change next.

    [bold]Examples[/bold]

      traceinsight analyze traces/
      traceinsight analyze 'traces/rank*.json.gz' -o report.html
      traceinsight analyze traces/ --format json | jq .verdict

    [bold]What the result says, in this order[/bold]

      - the verdict, one sentence with its number
      - what to change next: action, gain (a ceiling is an upper bound), risk
      - where the device time went: compute, transfer, wait for late peers, idle
      - communication by kind, its share of forward, stragglers, kernels
      - what could not be judged, and the capture setting that would allow it
      - data quality, clocks, and which ranks and steps all this rests on
    """
    chosen = _format(output_format, output)
    if output is not None:
        check_target(output, force=force, inputs=traces)
    elif force:
        raise UsageError("--force is about --output, which is not given.")
    else:
        require_stdout()
    from traceinsight import api  # noqa: PLC0415 - numpy and the analyses, which --help does not need

    with reading_progress(quiet=quiet) as progress:
        diagnosis = api.analyze(traces, run=run, rank_regex=rank_regex, workers=workers, progress=progress)
    from traceinsight.report import FORMATS  # noqa: PLC0415 - likewise

    to_screen = output is None
    text = FORMATS[chosen].render(diagnosis, _options(to_screen, no_color=no_color, all_ranks=all_ranks))
    if output is None:
        write_stdout(text)
    else:
        write_file(output, text, force=force)
        if not quiet:
            print_note(f"Wrote {output} ({chosen}): {diagnosis.verdict}")


def _format(given: FormatName | None, output: Path | None) -> str:
    if given is not None:
        return given.value
    if output is None:
        return FormatName.TERMINAL.value
    from traceinsight.report import format_for  # noqa: PLC0415 - not needed for --help

    inferred = format_for(output.name)
    if inferred is None:
        raise UsageError(
            "the ending of the output file names no format.",
            where=str(output),
            what_to_do=f"Add --format {'|'.join(FormatName)}, or end the name in .html, .json, .md or .txt.",
        )
    return inferred.name


def _options(to_screen: bool, *, no_color: bool, all_ranks: bool) -> ReportOptions:
    from traceinsight.report import ReportOptions  # noqa: PLC0415 - not needed for --help

    if not to_screen:
        return ReportOptions(width=_FILE_WIDTH, color=False, all_ranks=all_ranks)
    width = max(shutil.get_terminal_size((_FILE_WIDTH, 24)).columns, _LEAST_WIDTH)
    plain = no_color or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return ReportOptions(width=width, color=sys.stdout.isatty() and not plain, all_ranks=all_ranks)
