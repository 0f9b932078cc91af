"""Arguments and options that several commands share: declared once, so that they read alike everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Traces = Annotated[
    list[str],
    typer.Argument(
        metavar="TRACES",
        help="Trace files (.json, .json.gz, .zip), folders, globs or URLs. All ranks of one run.",
        show_default=False,
    ),
]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", "-o", metavar="FILE",
        help="Write to FILE (.html, .json, .md, .txt) instead of stdout. An existing file is kept.",
        show_default=False, rich_help_panel="Result",
    ),
]  # fmt: skip
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace an existing --output file, but never a trace that is read.",
        rich_help_panel="Result",
    ),
]
AllRanks = Annotated[
    bool,
    typer.Option("--all-ranks", help="One line per rank even from 24 ranks on.", rich_help_panel="Result"),
]
NoColor = Annotated[
    bool,
    typer.Option(
        "--no-color", help="No colour. Also: NO_COLOR=1, or write to a pipe.", rich_help_panel="Result"
    ),
]
RunNumber = Annotated[
    int | None,
    typer.Option(
        "--run", metavar="N", min=1,
        help="Which run, when the files hold several: 1 is the oldest. Default: the newest; the others "
        "are listed.",
        show_default=False, rich_help_panel="Reading",
    ),
]  # fmt: skip
RankRegex = Annotated[
    str | None,
    typer.Option(
        "--rank-regex", metavar="RE",
        help=r"Finds the rank in a file name, in one group, e.g. 'worker(\d+)'. Needed only when the "
        "traces do not name their rank.",
        show_default=False, rich_help_panel="Reading",
    ),
]  # fmt: skip
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", metavar="N", min=1, help="Processes that read files. Default: by size and cores.",
        show_default=False, rich_help_panel="Reading",
    ),
]  # fmt: skip
Quiet = Annotated[
    bool,
    typer.Option("--quiet", "-q", help="No progress bar and no notes on stderr.", rich_help_panel="Reading"),
]
