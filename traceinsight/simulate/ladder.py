"""The published case, stage by stage, against its simulation: ``python -m traceinsight.simulate.ladder``.

One calibration for all stages (``presets/ladder_1node.toml``); a stage differs from the one before by the
change that was really made, and by nothing else.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from traceinsight.simulate.load import load_spec
from traceinsight.simulate.machine import DEVICE_KINDS
from traceinsight.simulate.run import SimulatedRun, simulate

# (stage, nodes) -> throughput relative to one node. "balanced" was published as a gain over "qcomms".
PUBLISHED: dict[tuple[str, int], float] = {
    ("tcp", 2): 0.2,
    ("efa", 2): 1.13,
    ("efa", 4): 1.21,
    ("qcomms", 2): 1.57,
    ("qcomms", 4): 2.3,
    ("balanced", 2): 1.57 * 1.053,
    ("balanced", 4): 2.3 * 1.152,
    ("narrow", 2): 1.78,
    ("narrow", 4): 2.8,
    ("2d_alltoall_intra", 2): 2.0,
    ("2d_alltoall_intra", 4): 3.9,
    ("2d_alltoall_intra", 8): 7.5,
}


@dataclass(frozen=True, slots=True)
class LadderRow:
    """One published figure. ``error`` is simulated / published - 1."""

    figure: str
    unit: str
    published: float
    simulated: float

    @property
    def error(self) -> float:
        """Relative to the published figure."""
        return self.simulated / self.published - 1


@cache
def _run(preset: str) -> SimulatedRun:
    return simulate(load_spec(preset))


def ladder_throughputs(run: Callable[[str], SimulatedRun] = _run) -> list[LadderRow]:
    """Every published throughput with its simulation, by stage; ``run`` simulates a preset."""
    base = run("ladder_1node").truth.examples_per_s
    ratios = {
        (stage, nodes): run(f"ladder_{stage}_{nodes}node").truth.examples_per_s / base
        for stage, nodes in PUBLISHED
    }
    rows = [
        LadderRow(f"{stage}, {nodes} nodes", "x", published, ratios[stage, nodes])
        for (stage, nodes), published in PUBLISHED.items()
    ]
    for nodes, published in ((2, 0.053), (4, 0.152)):
        gain = ratios["balanced", nodes] / ratios["qcomms", nodes] - 1
        rows.append(LadderRow(f"gain by balancing, {nodes} nodes", "share", published, gain))
    return rows


def ladder_details(run: Callable[[str], SimulatedRun] = _run) -> list[LadderRow]:
    """The other published figures: utilisation, examples/s, share of forward, latency of the exchange."""
    efa, qcomms = run("ladder_efa_2node"), run("ladder_qcomms_2node")
    last = run("ladder_2d_alltoall_intra_8node")
    crossing = run("ladder_2d_allreduce_intra_8node")
    return [
        LadderRow("compute share of the step, efa, 2 nodes", "share", 0.5454, compute_share(efa)),
        LadderRow("largest collective / forward, efa, 2 nodes", "share", 0.20, largest_share_of_forward(efa)),
        LadderRow("the same, qcomms", "share", 0.05, largest_share_of_forward(qcomms)),
        LadderRow("all-to-alls of forward before the flip, 8 nodes", "ms", 78.0, exchange_ms(crossing)),
        LadderRow("the same after it", "ms", 13.0, exchange_ms(last)),
        LadderRow("examples/s, 8 nodes", "1/s", 490_000.0, last.truth.examples_per_s),
    ]


def compute_share(run: SimulatedRun) -> float:
    """Median over ranks and steps of compute / window."""
    return float(np.median([step.compute_ns / step.window_ns for step in run.truth.steps]))


def exchange_ms(run: SimulatedRun) -> float:
    """Transfer of all forward exchanges of one step, added up, ms."""
    step = run.spec.capture.first_step
    return sum(
        float(one.transfer_ns.max()) / 1e6
        for one in run.collectives
        if one.step == step and one.label.startswith(("All2All_Pooled_fwd", "All2All_Seq_fwd"))
    )


def largest_share_of_forward(run: SimulatedRun) -> float:
    """Longest collective launched by forward / device span of forward; mean over ranks, median over steps."""
    return float(np.median([share.mean() for share in _largest_shares(run)]))


def _largest_shares(run: SimulatedRun) -> Iterator[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    for at, row in enumerate(run.rows):
        if row.name != "## forward ##":
            continue
        inside = [one for one in run.rows[at + 1 : at + 1 + row.encloses] if one.kind in DEVICE_KINDS]
        start = np.min([one.start_ns for one in inside], axis=0)
        end = np.max([one.start_ns + one.dur_ns for one in inside], axis=0)
        largest = np.max([one.dur_ns for one in inside if one.collective is not None], axis=0)
        yield largest / (end - start)


def table(rows: Sequence[LadderRow]) -> str:
    """The rows as Markdown."""
    lines = ["| figure | published | simulated | error |", "|---|---|---|---|"]
    for row in rows:
        share = row.unit == "share"
        numbers = [f"{value:.1%}" if share else _number(value) for value in (row.published, row.simulated)]
        unit = "" if share else f" {row.unit}"
        lines.append(f"| {row.figure} | {numbers[0]}{unit} | {numbers[1]}{unit} | {row.error:+.0%} |")
    return "\n".join(lines) + "\n"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def main() -> int:
    """Print published against simulated; the exit code is always 0."""
    sys.stdout.write(table([*ladder_throughputs(), *ladder_details()]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
