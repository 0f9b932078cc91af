"""Where the two free numbers of the published case's network come from: least squares over all its figures.

    python benchmarks/ladder_calibration.py
    python benchmarks/ladder_calibration.py --set tables.item.count=4

searches the network efficiency and the latency per message that fit docs/ladder.md's figures best, starting
from the hardware table's, with one value for all stages on EFA. ``--set`` changes any other number of the
case first, to see what it would do to the fit. One to two minutes.
"""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from traceinsight.base.hardware import NETWORKS  # noqa: E402 - the repository must be on the path first
from traceinsight.simulate import load_spec, simulate  # noqa: E402
from traceinsight.simulate.ladder import (  # noqa: E402
    LadderRow,
    ladder_details,
    ladder_throughputs,
    table,
)
from traceinsight.simulate.run import SimulatedRun  # noqa: E402

FREE = ("cluster.network_efficiency", "cluster.network_latency_us")
TABLE_VALUES = np.array([NETWORKS["efa_p4d"].efficiency, NETWORKS["efa_p4d"].latency_us])
DIFFERENCES = np.array([0.02, 15.0])
ITERATIONS = 3

SHORT = {"capture.steps": 2, "dense.small_kernels": 8}
"""Fewer steps and fewer small kernels: a tenth of the time, and no figure moves by more than 0.5 %."""

OUT_OF_REACH = ("the same, qcomms", "the same after it")
"""Figures that neither number moves: docs/ladder.md says why. They do not take part."""


def figures(values: NDArray[np.float64], changes: Mapping[str, object]) -> list[LadderRow]:
    """All figures but TCP's (which has a network of its own) with these values of the free numbers."""
    free = dict(zip(FREE, values.tolist(), strict=True))

    @cache
    def run(preset: str) -> SimulatedRun:
        own_network = preset.startswith("ladder_tcp")
        return simulate(load_spec(preset, {**SHORT, **changes, **({} if own_network else free)}))

    rows = [*ladder_throughputs(run), *ladder_details(run)]
    return [row for row in rows if not row.figure.startswith("tcp")]


def residuals(rows: list[LadderRow]) -> NDArray[np.float64]:
    """ln(simulated / published) of the figures that take part, each with the same weight."""
    return np.log([row.simulated / row.published for row in rows if row.figure not in OUT_OF_REACH])


def fit(changes: Mapping[str, object]) -> list[LadderRow]:
    """Gauss-Newton with forward differences, from the hardware table's values."""
    values = TABLE_VALUES
    rows = figures(values, changes)
    for _ in range(ITERATIONS):
        now = residuals(rows)
        slopes = [
            (residuals(figures(values + step, changes)) - now) / step.sum() for step in np.diag(DIFFERENCES)
        ]
        values = values + np.linalg.lstsq(np.array(slopes).T, -now, rcond=None)[0]
        rows = figures(values, changes)
        said = ", ".join(f"{name} = {value:.3g}" for name, value in zip(FREE, values, strict=True))
        typical = np.sqrt(np.mean(residuals(rows) ** 2))
        sys.stdout.write(f"{said}: root mean square of ln(simulated / published) {typical:.4f}\n")
    return rows


def change(text: str) -> tuple[str, object]:
    """``tables.item.count=4`` -> its name and value, read as TOML."""
    name, _, value = text.partition("=")
    return name, tomllib.loads(f"value = {value}")["value"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--set", type=change, action="append", default=[], metavar="FIELD=VALUE")
    sys.stdout.write("\n" + table(fit(dict(parser.parse_args().set))))


if __name__ == "__main__":
    main()
