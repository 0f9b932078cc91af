"""At each stage of the published case the roadmap names what was really done next: docs/ladder.md."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from traceinsight.simulate import load_spec, simulate, write_run

# (stage, the edit that describes what was done next)
STAGES = [
    ("tcp", "network"),
    ("efa", "qcomms"),
    ("qcomms", "balance"),
    ("balanced", "narrow"),
    ("narrow", "2d"),
]
SHORT = {"capture.steps": 3}


def analysed(stage: str, nodes: int, folder: Path, diagnose: Callable[..., Any]) -> Any:
    write_run(simulate(load_spec(f"ladder_{stage}_{nodes}node", SHORT)), folder, overwrite=True)
    return diagnose(folder)


@pytest.mark.slow
@pytest.mark.parametrize("nodes", [2, 4])
@pytest.mark.parametrize(("stage", "done_next"), STAGES)
def test_the_next_change_is_the_one_that_was_made(
    stage: str, done_next: str, nodes: int, tmp_path: Path, diagnose: Callable[..., Any]
) -> None:
    found = analysed(stage, nodes, tmp_path / "run", diagnose)
    edits = [entry.edit.partition("=")[0] for entry in found.roadmap if entry.edit]
    assert edits[0] == done_next
    speedups = [entry.speedup.expected for entry in found.roadmap if entry.speedup]
    assert all(speedup > 1.02 for speedup in speedups)


@pytest.mark.slow
def test_the_last_stage_has_nothing_left_to_gain(tmp_path: Path, diagnose: Callable[..., Any]) -> None:
    found = analysed("2d_alltoall_intra", 4, tmp_path / "run", diagnose)
    assert (found.findings, found.roadmap) == ([], [])
