"""More nodes, where tables in pieces get more of them: against a simulation with as many as ranks."""

from pathlib import Path
from typing import Any

import pytest

from tests.replay.jobs import bench_of
from traceinsight.replay.edits.registry import parse_edit
from traceinsight.simulate import decode_spec, simulate


def job(nodes: int, **pieces: float) -> dict[str, Any]:
    """Four wide tables in pieces, and four whole ones for each rank of the two nodes."""
    plain = {"count": 32, "rows": 500_000, "dim": 64, "mean_ids": 5, "module": "plain"}
    wide = {"count": 4, "rows": 1_000_000, "dim": 256, "mean_ids": 20, "placement": "modulo"} | pieces
    return {
        "seed": 5,
        "batch_per_rank": 1024,
        "cluster": {"nodes": nodes, "gpus_per_node": 4, "gpu": "A100", "network": "efa_p4d"},
        "tables": {"wide": wide, "plain": plain},
        "dense": {"forward_gflop": 1},
        "capture": {"steps": 3},
    }


def truth_ns(nodes: int, **pieces: float) -> float:
    return simulate(decode_spec(job(nodes, **pieces))).truth.step_ns


@pytest.mark.parametrize("nodes", [4, 8])
def test_the_interval_reaches_to_the_step_with_pieces_for_every_rank(tmp_path: Path, nodes: int) -> None:
    found = bench_of(tmp_path, job(2, partitions_per_rank=1.0)).predict([parse_edit(f"nodes={nodes}")])
    (said,) = found.explanations
    truth = truth_ns(nodes, partitions_per_rank=1.0)
    assert truth > 1.1 * found.expected_ns  # it matters
    assert found.expected_ns * said.slower_factor == pytest.approx(truth, rel=0.02)
    assert found.low_ns < truth < found.high_ns
    assert said.detail is not None
    assert f"with pieces for every rank the step takes {said.slower_factor:.2f}x as long" in said.detail


def test_whole_tables_have_no_pieces_that_could_become_more(tmp_path: Path) -> None:
    whole = [job(nodes, partitions=1, count=16) for nodes in (2, 4)]
    for one in whole:
        del one["tables"]["plain"], one["tables"]["wide"]["placement"]
    found = bench_of(tmp_path, whole[0]).predict([parse_edit("nodes=4")])
    (said,) = found.explanations
    assert said.slower_factor == 1.0
    assert "pieces" not in (said.detail or "")
    assert found.expected_ns == pytest.approx(simulate(decode_spec(whole[1])).truth.step_ns, rel=0.02)


def test_vectors_of_single_ids_do_not_become_more_with_the_pieces(tmp_path: Path) -> None:
    """Without pooling each id gives back one vector, wherever it is looked up."""
    unpooled = job(2, partitions_per_rank=1.0)
    unpooled["tables"]["wide"] |= {"pooling": "none", "count": 1}
    (said,) = bench_of(tmp_path, unpooled).predict([parse_edit("nodes=4")]).explanations
    assert said.slower_factor == 1.0
