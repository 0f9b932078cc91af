"""The commands, put together."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Annotated, ParamSpec

import typer

from traceinsight import __version__
from traceinsight.cli.analyze import analyze
from traceinsight.cli.compare import compare
from traceinsight.cli.dashboard import dashboard
from traceinsight.cli.export import export
from traceinsight.cli.rules import rules
from traceinsight.cli.scaling import scaling
from traceinsight.cli.simulate import simulate
from traceinsight.cli.whatif import whatif

_Arguments = ParamSpec("_Arguments")

app = typer.Typer(
    name="traceinsight",
    help=(
        "Why does adding machines not make my TorchRec job faster, and what do I change next?\n\n"
        "Reads PyTorch-profiler traces, one per rank, and answers in one sentence; then what to change, then "
        "the evidence.\n\n"
        "Example: [bold]traceinsight analyze traces/[/bold]"
    ),
    epilog="Exit codes: 0 done, 1 a --fail-on gate failed (or a bug), 2 usage, 3 unreadable input.",
    rich_markup_mode="rich",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


class Stopped(Exception):  # noqa: N818 - the user's wish, not an error
    """Ctrl-C, in a form that typer lets pass; what it does with KeyboardInterrupt differs by version."""


def _stoppable(command: Callable[_Arguments, None]) -> Callable[_Arguments, None]:
    @functools.wraps(command)
    def run(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> None:
        try:
            command(*args, **kwargs)
        except KeyboardInterrupt:
            raise Stopped from None

    return run


app.command()(_stoppable(analyze))
app.command()(_stoppable(whatif))
app.command()(_stoppable(compare))
app.command()(_stoppable(scaling))
app.command()(_stoppable(dashboard))
app.command()(_stoppable(export))
app.command()(_stoppable(simulate))
app.command()(_stoppable(rules))


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
