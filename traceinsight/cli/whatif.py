"""``traceinsight whatif``: predict a change before making it."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Annotated

import typer

from traceinsight.base.errors import UsageError
from traceinsight.cli.options import Force, NoColor, Output, Quiet, RankRegex, RunNumber, Traces, Workers
from traceinsight.cli.progress import reading_progress
from traceinsight.cli.result import FormatName, FormatOption, report_options, target
from traceinsight.cli.stdout import write_stdout

if TYPE_CHECKING:
    from traceinsight.report import ReportOptions


def whatif(
    traces: Traces,
    edits: Annotated[
        list[str] | None,
        typer.Option(
            "--edit", "-e", metavar="EDIT",
            help="A change, e.g. qcomms=fp8. Repeat to apply several, in this order. Without any, the "
            "possible edits are listed; in another format, today's step.",
            show_default=False,
        ),
    ] = None,
    output_format: FormatOption = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="The same as --format json.", rich_help_panel="Result")
    ] = False,
    output: Output = None,
    force: Force = False,
    no_color: NoColor = False,
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
    place = target(_format(output_format, as_json=as_json), output, force=force, inputs=traces)
    from traceinsight import api  # noqa: PLC0415 - numpy and the analyses, which --help does not need

    if not edits and output is None and place.format_name == FormatName.TERMINAL:
        write_stdout("".join(f"{line}\n" for line in _fitted(api.edit_help())))
        return
    api.check_comparison(edits or (), ())  # before minutes of reading, not after
    with reading_progress(quiet=quiet) as progress:
        loaded = api.load(traces, run=run, rank_regex=rank_regex, workers=workers, progress=progress)
    answer = api.whatif(loaded, edits or ())
    from traceinsight.report.whatif import render_what_if, verdict_of  # noqa: PLC0415 - likewise

    place.write(
        lambda name, options: render_what_if(answer, name, options),
        verdict_of(answer),
        quiet=quiet,
        no_color=no_color,
    )


def _format(given: FormatName | None, *, as_json: bool) -> FormatName | None:
    if as_json and given not in {None, FormatName.JSON}:
        raise UsageError(f"--json and --format {given} ask for two formats.", what_to_do="Give one of them.")
    return FormatName.JSON if as_json else given


def _screen() -> ReportOptions:
    return report_options(to_screen=True, no_color=True, all_ranks=False)


def _fitted(lines: list[str]) -> list[str]:
    """Within the screen, under each other where what an edit does takes several lines."""
    return [
        part for line in lines for part in wrap(line, _screen().width, subsequent_indent=" " * _NAME_WIDTH)
    ]


_NAME_WIDTH = 28
"""Where ``api.edit_help`` begins to say what an edit does."""
