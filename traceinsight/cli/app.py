"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from traceinsight import __version__
from traceinsight.cli.analyze import analyze
from traceinsight.cli.rules import rules

app = typer.Typer(
    name="traceinsight",
    help=(
        "Why does adding machines not make my TorchRec job faster, and what do I change next?\n\n"
        "Reads PyTorch-profiler traces, one per rank, and answers in one sentence; then what to change, then "
        "the evidence.\n\n"
        "Example: [bold]traceinsight analyze traces/[/bold]"
    ),
    epilog="Exit codes: 0 done, 1 a bug in traceinsight, 2 usage, 3 unreadable input.",
    rich_markup_mode="rich",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command()(analyze)
app.command()(rules)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"traceinsight {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    pass
