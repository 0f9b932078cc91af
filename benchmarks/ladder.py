"""The published case as a test of the roadmap: what does it say at each stage, and what was really done next?

    python benchmarks/ladder.py

renews the tables of docs/ladder.md. Every stage is simulated, its traces are written and analysed like
anybody's. About three minutes.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from traceinsight import api  # noqa: E402 - the repository must be on the path first
from traceinsight.diagnosis import Diagnosis  # noqa: E402
from traceinsight.simulate import load_spec, simulate, write_run  # noqa: E402
from traceinsight.simulate.ladder import ladder_details, ladder_throughputs, table  # noqa: E402


@dataclass(frozen=True)
class Stage:
    """A stage, the edit that describes what was done next, and the stage that it led to."""

    name: str
    edit: str
    after: str


STAGES = (
    Stage("tcp", "network", "efa"),
    Stage("efa", "qcomms", "qcomms"),
    Stage("qcomms", "balance", "balanced"),
    Stage("balanced", "narrow", "narrow"),
    Stage("narrow", "2d", "2d_alltoall_intra"),
)
NODES = (2, 4, 8)

PAGE = REPOSITORY / "docs" / "ladder.md"
HEADER = (
    "| stage | nodes | step | roadmap (cumulative speedup) | really next | first? | predicted | simulated "
    "| error |",
    "|---|---|---|---|---|---|---|---|---|",
)


def rows() -> Iterator[str]:
    """One row per stage and number of nodes."""
    for nodes in NODES:
        for stage in STAGES:
            found = diagnosis(stage.name, nodes)
            after_ns = simulated_step_ns(stage.after, nodes)
            yield row(stage, nodes, found, after_ns)


def row(stage: Stage, nodes: int, found: Diagnosis, after_ns: float) -> str:
    planned = [entry for entry in found.roadmap if entry.edit is not None]
    said = ", ".join(
        f"`{entry.edit}` {entry.cumulative_speedup.expected:.2f}x" if entry.cumulative_speedup else ""
        for entry in planned
    )
    first = planned[0] if planned else None
    named = first is not None and (first.edit or "").partition("=")[0] == stage.edit
    predicted = error = "–"
    if named and first is not None and first.step_ns is not None:
        predicted = f"{first.step_ns.expected / 1e6:.0f} ms"
        error = f"{first.step_ns.expected / after_ns - 1:+.1%}"
    step_ns = simulated_step_ns(stage.name, nodes)
    return (
        f"| {stage.name} | {nodes} | {step_ns / 1e6:.0f} ms | {said or 'empty'} | `{stage.edit}` | "
        f"{'yes' if named else 'no'} | {predicted} | {after_ns / 1e6:.0f} ms | {error} |"
    )


def diagnosis(stage: str, nodes: int) -> Diagnosis:
    with tempfile.TemporaryDirectory() as folder:
        write_run(simulate(load_spec(f"ladder_{stage}_{nodes}node")), folder, overwrite=True)
        return api.analyze(folder)


def simulated_step_ns(stage: str, nodes: int) -> float:
    """Mean time between the ends of consecutive steps, from the truth."""
    run = simulate(load_spec(f"ladder_{stage}_{nodes}node"))
    return 1e9 * run.spec.batch_per_rank * nodes * run.spec.cluster.gpus_per_node / run.truth.examples_per_s


def with_table(page: str, name: str, table_text: str) -> str:
    """The page with what stands between the two marks of a table replaced."""
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, rest = page.split(begin)
    return before + begin + table_text + end + rest.split(end)[1]


def main() -> None:
    figures = table([*ladder_throughputs(), *ladder_details()])
    roadmaps = "".join(f"{line}\n" for line in (*HEADER, *rows()))
    page = with_table(PAGE.read_text(encoding="utf-8"), "figures", figures)
    PAGE.write_text(with_table(page, "roadmaps", roadmaps), encoding="utf-8")


if __name__ == "__main__":
    main()
