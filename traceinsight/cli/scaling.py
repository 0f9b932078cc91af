"""``traceinsight scaling``: what more machines brought, what they cost, what still more would bring."""

from __future__ import annotations

from typing import Annotated

import typer

from traceinsight.cli.options import Force, NoColor, Output, Quiet, RankRegex, Workers
from traceinsight.cli.progress import reading_progress
from traceinsight.cli.result import FormatOption, target

Runs = Annotated[
    list[str],
    typer.Argument(
        metavar="RUN",
        help="One folder, file, glob or URL per run, two runs or more. The smallest is the base.",
        show_default=False,
    ),
]


def scaling(
    runs: Runs,
    output_format: FormatOption = None,
    output: Output = None,
    force: Force = False,
    no_color: NoColor = False,
    rank_regex: RankRegex = None,
    workers: Workers = None,
    quiet: Quiet = False,
) -> None:
    """Compare runs of one job at several world sizes: speedup, efficiency, where the rest went.

    [bold]Examples[/bold]

      traceinsight scaling runs/1node runs/2node runs/4node
      traceinsight scaling runs/*node -o scaling.md

    World sizes come from the traces; batch and nodes from run.json where it is
    there. Without it all runs are taken to have the same batch per rank.

    [bold]What the result says, in this order[/bold]

      - throughput relative to the smallest run, against ideal
      - the time each step lost against ideal, in parts that sum to it
      - a forecast for two and four times the largest size
      - what the runs differ in besides their size
    """
    place = target(output_format, output, force=force, inputs=runs)
    from traceinsight import api  # noqa: PLC0415 - numpy and the analyses, which --help does not need

    with reading_progress(quiet=quiet) as progress:
        result = api.scaling(runs, rank_regex=rank_regex, workers=workers, progress=progress)
    from traceinsight.report.scaling import render_scaling  # noqa: PLC0415 - likewise

    place.write(
        lambda name, options: render_scaling(result, name, options),
        result.verdict,
        quiet=quiet,
        no_color=no_color,
    )
