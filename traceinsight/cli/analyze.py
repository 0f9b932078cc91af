"""``traceinsight analyze``: the main job."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

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
from traceinsight.cli.result import FormatOption, target

if TYPE_CHECKING:
    from traceinsight.diagnosis import Diagnosis
    from traceinsight.report import ReportOptions


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
    place = target(output_format, output, force=force, inputs=traces)
    from traceinsight import api  # noqa: PLC0415 - numpy and the analyses, which --help does not need

    with reading_progress(quiet=quiet) as progress:
        diagnosis = api.analyze(traces, run=run, rank_regex=rank_regex, workers=workers, progress=progress)
    place.write(_render(diagnosis), diagnosis.verdict, quiet=quiet, no_color=no_color, all_ranks=all_ranks)


def _render(diagnosis: Diagnosis) -> Callable[[str, ReportOptions], str]:
    from traceinsight.report import FORMATS  # noqa: PLC0415 - not needed for --help

    return lambda name, options: FORMATS[name].render(diagnosis, options)
