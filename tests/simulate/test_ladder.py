"""The published case: one calibration, every throughput within 15 %, the misses named in docs/ladder.md."""

from __future__ import annotations

import pytest

from traceinsight.simulate.ladder import ladder_details, ladder_throughputs

WITHIN = 0.15

# Simulated figures that do not reach the published ones, and why, are documented: docs/ladder.md.
MISSES = {"the same, qcomms", "the same after it"}


@pytest.mark.slow
def test_every_published_throughput_is_met() -> None:
    errors = {row.figure: row.error for row in ladder_throughputs()}
    assert {figure: error for figure, error in errors.items() if abs(error) > WITHIN} == {}


@pytest.mark.slow
def test_the_other_figures_are_met_but_for_the_documented_misses() -> None:
    missed = {row.figure for row in ladder_details() if abs(row.error) > WITHIN}
    assert missed == MISSES
