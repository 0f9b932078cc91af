"""``traceinsight whatif``: predict a change before making it."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from traceinsight.cli.options import Quiet, RankRegex, RunNumber, Traces, Workers
from traceinsight.cli.progress import reading_progress
from traceinsight.cli.result import report_options
from traceinsight.cli.stdout import require_stdout, write_stdout

if TYPE_CHECKING:
    from traceinsight.report import ReportOptions


def whatif(
    traces: Traces,
    edits: Annotated[
        list[str] | None,
        typer.Option(
            "--edit", "-e", metavar="EDIT",
            help="A change, e.g. qcomms=fp8. Repeat to apply several, in this order. Without any, the "
            "possible edits are listed.",
            show_default=False,
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON instead of a table.")] = False,
    run: RunNumber = None,
    rank_regex: RankRegex = None,
    workers: Workers = None,
    quiet: Quiet = False,
) -> None:  # fmt: skip
    """Predict the step time after changes, by replaying the measured steps with them.

    Gains overlap, so each edit is applied on top of the ones before it; they
    are never added up. An edit that would slow the step down says so.

    [bold]Examples[/bold]

      traceinsight whatif traces/ --edit qcomms=fp8
      traceinsight whatif traces/ -e no-straggler=2 -e overlap=sparse_data_dist
    """
    from traceinsight import api  # noqa: PLC0415 - numpy and the analyses, which --help does not need

    if not edits:
        write_stdout("".join(f"{line}\n" for line in _fitted(api.edit_help())))
        return
    require_stdout()
    with reading_progress(quiet=quiet) as progress:
        loaded = api.load(traces, run=run, rank_regex=rank_regex, workers=workers, progress=progress)
    answer = api.whatif(loaded, edits)
    from traceinsight.report.json_document import to_json  # noqa: PLC0415 - likewise
    from traceinsight.report.whatif import render_what_if  # noqa: PLC0415 - likewise

    write_stdout(to_json(answer) if as_json else render_what_if(answer, _screen()))


def _screen() -> ReportOptions:
    return report_options(to_screen=True, no_color=True, all_ranks=False)


def _fitted(lines: list[str]) -> list[str]:
    """Within the screen, under each other where what an edit does takes several lines."""
    return [
        part for line in lines for part in wrap(line, _screen().width, subsequent_indent=" " * _NAME_WIDTH)
    ]


_NAME_WIDTH = 28
"""Where ``api.edit_help`` begins to say what an edit does."""
