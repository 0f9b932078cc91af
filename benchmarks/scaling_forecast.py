"""How well the forecast of ``traceinsight scaling`` meets simulated truth at sizes it has not seen.

``python benchmarks/scaling_forecast.py --specs 64 --first-seed 9000``: random jobs, each simulated at 1, 2
and 4 nodes (what the forecast is given) and at 8 and 16 (what it is held against). Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from traceinsight.diagnosis.scaling import ForecastPoint
from traceinsight.engine.scaling import MeasuredRun, scale
from traceinsight.simulate import decode_spec
from traceinsight.simulate.run import simulate

GPUS_PER_NODE = 4
SEEN, AHEAD = (1, 2, 4), (8, 16)


def random_job(seed: int, nodes: int) -> dict[str, Any]:
    """One job at one size; only the size depends on ``nodes``."""
    pick = random.Random(seed)
    fields: dict[str, Any] = {
        "name": f"job_{seed}",
        "seed": seed,
        "batch_per_rank": pick.choice([256, 1024, 4096]),
        "pipeline_depth": pick.choice([0, 1]),
        "jitter": pick.choice([0.0, 0.01, 0.05]),
        "cluster": {
            "nodes": nodes,
            "gpus_per_node": GPUS_PER_NODE,
            "gpu": pick.choice(["V100", "A100", "H100"]),
            "network": pick.choice(["tcp_100g", "efa_p4d", "efa_p5", "ib_hdr"]),
        },
        "tables": {
            "big": {
                "count": pick.choice([2, 8]),
                "rows": 1_000_000,
                "dim": pick.choice([64, 128]),
                "mean_ids": pick.choice([5.0, 20.0]),
                "zipf": pick.choice([0.0, 1.05]),
                "partitions": pick.choice([1, 8]),
            },
            "spread": {
                "count": pick.choice([1, 4]),
                "rows": 1_000_000,
                "dim": 64,
                "partitions_per_rank": 1.0,
                "placement": "modulo",
            },
        },
        "dense": {
            "forward_gflop": pick.choice([0.2, 1.0, 3.0]),
            "parameters": pick.choice([10**6, 5 * 10**7]),
            "kernels": 8,
            "small_kernels": 20,
        },
        "comms": {"qcomms_forward": pick.choice(["fp32", "fp8"]), "qcomms_backward": "fp32"},
        "capture": {"steps": 3, "operators": False},
    }
    if pick.random() < 0.3:
        fields["two_d"] = {"group_size": GPUS_PER_NODE, "sync_share": pick.choice([0.01, 1.0])}
    return fields


def measured(seed: int, nodes: int) -> MeasuredRun:
    """The simulated truth in the shape that a diagnosis is reduced to."""
    spec = decode_spec(random_job(seed, nodes))
    return MeasuredRun(
        name=f"{nodes} nodes", world_size=spec.world_size, nodes=nodes, batch_per_rank=spec.batch_per_rank,
        ranks_read=spec.world_size, steps=spec.capture.steps, device=spec.cluster.gpu, simulated=True,
        step_ns=round(simulate(spec).truth.step_ns), parts=None, settings={}, notes=(),
    )  # fmt: skip


def outcomes(seed: int) -> Iterator[tuple[int, str, ForecastPoint, float]]:
    """(nodes, shape, forecast, true step of that size)."""
    result = scale([measured(seed, nodes) for nodes in SEEN], version="benchmark")
    assert result.model is not None
    for nodes, point in zip(AHEAD, result.forecast, strict=True):
        yield nodes, result.model.shape, point, float(measured(seed, nodes).step_ns or 0)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--specs", type=int, default=40)
    parser.add_argument("--first-seed", type=int, default=9000)
    parser.add_argument("--each", action="store_true", help="print every forecast")
    chosen = parser.parse_args()
    rows = [
        row for seed in range(chosen.first_seed, chosen.first_seed + chosen.specs) for row in outcomes(seed)
    ]
    if chosen.each:
        for nodes, shape, point, truth in rows:
            step = point.step_ns
            inside = (step.low or 0) <= truth <= (step.high or 0)
            print(
                f"{nodes:3d} {shape:12s} {truth / 1e6:9.2f} {step.expected / 1e6:9.2f} "
                f"[{(step.low or 0) / 1e6:9.2f} {(step.high or 0) / 1e6:9.2f}] {'' if inside else 'OUT'}"
            )
    print("| nodes | n | median error | worst | truth inside the interval | median width of the interval |")
    print("|---|---|---|---|---|---|")
    for nodes in AHEAD:
        some = [(point.step_ns, truth) for at, _, point, truth in rows if at == nodes]
        errors = [abs(step.expected / truth - 1) for step, truth in some]
        inside = sum((step.low or 0) <= truth <= (step.high or 0) for step, truth in some)
        width = median([((step.high or 0) - (step.low or 0)) / truth for step, truth in some])
        print(
            f"| {nodes} | {len(some)} | {median(errors):.1%} | {max(errors):.1%} | {inside} of {len(some)} "
            f"| {width:.0%} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
