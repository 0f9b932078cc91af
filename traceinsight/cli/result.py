"""Where a report goes and how it looks: what ``analyze`` and the commands that compare runs share."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from traceinsight.base.errors import UsageError
from traceinsight.cli.messages import print_note
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


@dataclass(frozen=True, slots=True)
class Target:
    """Where a report will go, checked before any work is done, and in which format."""

    format_name: str
    output: Path | None
    force: bool

    def write(
        self,
        render: Callable[[str, ReportOptions], str],
        summary: str,
        *,
        quiet: bool,
        no_color: bool,
        all_ranks: bool = False,
    ) -> None:
        """Render for the place (``render(format name, options)``), write; a file is noted on stderr."""
        options = report_options(self.output is None, no_color=no_color, all_ranks=all_ranks)
        text = render(self.format_name, options)
        if self.output is None:
            write_stdout(text)
            return
        write_file(self.output, text, force=self.force)
        if not quiet:
            print_note(f"Wrote {self.output} ({self.format_name}): {summary}")


def target(
    output_format: FormatName | None, output: Path | None, *, force: bool, inputs: Sequence[str]
) -> Target:
    """Choose the format and refuse a place that cannot be written before minutes of analysis are spent.

    Raises:
        UsageError: No format can be told, or the place must not be written.
        TraceInsightError: stdout is closed.

    """
    chosen = _format(output_format, output)
    if output is not None:
        check_target(output, force=force, inputs=inputs)
    elif force:
        raise UsageError("--force is about --output, which is not given.")
    else:
        require_stdout()
    return Target(chosen, output, force)


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


def report_options(to_screen: bool, *, no_color: bool, all_ranks: bool) -> ReportOptions:
    """How wide and how coloured: as the screen is; a file has a fixed width."""
    from traceinsight.report import ReportOptions  # noqa: PLC0415 - not needed for --help

    if not to_screen:
        return ReportOptions(width=_FILE_WIDTH, color=False, all_ranks=all_ranks)
    width = max(shutil.get_terminal_size((_FILE_WIDTH, 24)).columns, _LEAST_WIDTH)
    plain = no_color or bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return ReportOptions(width=width, color=sys.stdout.isatty() and not plain, all_ranks=all_ranks)
