"""``traceinsight compare``: two runs side by side, with the noise of their steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from traceinsight.base.errors import GateFailedError
from traceinsight.cli.options import Force, NoColor, Output, Quiet, RankRegex, Workers
from traceinsight.cli.progress import reading_progress
from traceinsight.cli.result import FormatOption, target

if TYPE_CHECKING:
    from traceinsight.diagnosis.comparison import Comparison
    from traceinsight.report import ReportOptions

_WHAT = "a trace file, folder, glob or URL, or what 'analyze --format json' wrote."
Before = Annotated[
    str, typer.Argument(metavar="BEFORE", help=f"The run to compare with: {_WHAT}", show_default=False)
]
After = Annotated[
    str, typer.Argument(metavar="AFTER", help="The run to judge: likewise.", show_default=False)
]
Edits = Annotated[
    list[str] | None,
    typer.Option(
        "--edit", "-e", metavar="EDIT",
        help="What was changed between them, e.g. qcomms=fp8: predicted from BEFORE and held against AFTER. "
        "Repeat. 'traceinsight whatif BEFORE' lists the edits.",
        show_default=False,
    ),
]  # fmt: skip
FailOn = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on", metavar="METRIC=LIMIT%",
        help="Exit with 1 when METRIC grew by more than LIMIT% of the step time before, beyond the noise, or "
        "cannot be judged. METRIC: regression (the step), exposed-comm, idle. Repeat.",
        show_default=False,
    ),
]  # fmt: skip
RunBefore = Annotated[
    int | None,
    typer.Option(
        "--run-before", metavar="N", min=1, help="Which run, when BEFORE holds several: 1 is the oldest.",
        show_default=False, rich_help_panel="Reading",
    ),
]  # fmt: skip
RunAfter = Annotated[
    int | None,
    typer.Option(
        "--run-after", metavar="N", min=1, help="Likewise for AFTER. Default: the newest.",
        show_default=False, rich_help_panel="Reading",
    ),
]  # fmt: skip


def compare(
    before: Before,
    after: After,
    edits: Edits = None,
    fail_on: FailOn = None,
    output_format: FormatOption = None,
    output: Output = None,
    force: Force = False,
    no_color: NoColor = False,
    run_before: RunBefore = None,
    run_after: RunAfter = None,
    rank_regex: RankRegex = None,
    workers: Workers = None,
    quiet: Quiet = False,
) -> None:
    """Say what changed between two runs, and what of it is more than noise.

    Step time, its parts and the collectives side by side. What is smaller than
    the noise of the steps is said to be no change; with one step on a side
    nothing is judged.

    [bold]Examples[/bold]

      traceinsight compare fp32/ fp8/ --edit qcomms=fp8
      traceinsight compare baseline.json traces/ --fail-on regression=5%
    """
    place = target(output_format, output, force=force, inputs=[before, after])
    from traceinsight import api  # noqa: PLC0415 - numpy and the analyses, which --help does not need

    api.check_comparison(edits or (), fail_on or ())  # before minutes of reading, not after
    with reading_progress(quiet=quiet) as progress:
        first, second = (
            api.load_run(path, run=run, rank_regex=rank_regex, workers=workers, progress=progress)
            for path, run in ((before, run_before), (after, run_after))
        )
    found = api.compare(first, second, edits or (), fail_on=fail_on or ())
    place.write(_render(found), found.verdict, quiet=quiet, no_color=no_color)
    _judge(found)


def _judge(comparison: Comparison) -> None:
    bad = [gate for gate in comparison.gates if gate.outcome != "passed"]
    if bad:
        raise GateFailedError("; ".join(f"--fail-on {gate.metric}: {gate.reason}" for gate in bad) + ".")


def _render(comparison: Comparison) -> Callable[[str, ReportOptions], str]:
    from traceinsight.report import FORMATS  # noqa: PLC0415 - not needed for --help
    from traceinsight.report.comparison import build_comparison  # noqa: PLC0415 - likewise
    from traceinsight.report.json_document import to_json  # noqa: PLC0415 - likewise

    def render(name: str, options: ReportOptions) -> str:
        if name == "json":
            return to_json(comparison)
        return FORMATS[name].draw(build_comparison(comparison), options)

    return render
