"""A rank whose own loader is slow, against a simulation in which it is as fast as the others'."""

from pathlib import Path
from typing import Any

import pytest

from tests.replay.jobs import bench_of
from traceinsight.replay.edits.registry import parse_edit
from traceinsight.simulate import decode_spec, simulate

STEP_MS = 29
"""About the length of the job's steps without anything late."""

JOB: dict[str, Any] = {
    "seed": 3,
    "batch_per_rank": 1024,
    "cluster": {"gpus_per_node": 4, "clock_skew_ms": 5},
    "tables": {"t": {"count": 16, "rows": 500_000, "dim": 64, "mean_ids": 5}},
    "dense": {"forward_gflop": 4},
    "capture": {"steps": 4},
}


def late(loader_ms: float, *stragglers: dict[str, float]) -> dict[str, Any]:
    return JOB | {"input": {"loader_ms": loader_ms}, "stragglers": list(stragglers)}


@pytest.mark.parametrize("pipeline_depth", [0, 1])
def test_a_batch_is_not_waited_for_where_the_others_have_theirs(tmp_path: Path, pipeline_depth: int) -> None:
    depth = {"pipeline_depth": pipeline_depth}
    slow = late(1, {"rank": 2, "input_ms": 2 * STEP_MS}) | depth
    truth_ns = simulate(decode_spec(late(1) | depth)).truth.step_ns
    predicted = bench_of(tmp_path, slow).predict([parse_edit("no-straggler=2")])
    assert predicted.before_ns > 1.5 * truth_ns
    assert predicted.expected_ns == pytest.approx(truth_ns, rel=0.01)


@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_batch_comes_with_those_that_the_others_wait_for(tmp_path: Path, step: int) -> None:
    """All loaders hold all steps up; that of rank 2 takes longer in one step."""
    slow = late(2 * STEP_MS, {"rank": 2, "input_ms": 2 * STEP_MS, "steps": [step]})
    truth_ns = simulate(decode_spec(late(2 * STEP_MS))).truth.step_ns
    predicted = bench_of(tmp_path, slow).predict([parse_edit("no-straggler=2")])
    assert predicted.before_ns > 1.2 * truth_ns
    assert predicted.expected_ns == pytest.approx(truth_ns, rel=0.01)


def test_ranks_of_a_group_are_late_by_different_times(tmp_path: Path) -> None:
    group = [{"rank": rank, "input_ms": (rank + 1) * STEP_MS} for rank in (1, 2)]
    truth_ns = simulate(decode_spec(late(1))).truth.step_ns
    predicted = bench_of(tmp_path, late(1, *group)).predict([parse_edit("no-straggler=1+2")])
    assert predicted.expected_ns == pytest.approx(truth_ns, rel=0.01)


def test_other_batches_stay_late(tmp_path: Path) -> None:
    """Two ranks are equally late: without one of them the other is."""
    both = late(1, *({"rank": rank, "input_ms": 2 * STEP_MS} for rank in (1, 2)))
    bench = bench_of(tmp_path, both)
    assert bench.predict([parse_edit("no-straggler=1")]).expected_ns == pytest.approx(
        bench.predict([]).expected_ns, rel=0.01
    )
