"""Small specifications, and merging changes into them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from traceinsight.base.hardware import GPUS, NETWORKS
from traceinsight.simulate import Spec, decode_spec

TWO_NODES: dict[str, Any] = {
    "name": "two_nodes",
    "seed": 3,
    "batch_per_rank": 512,
    "cluster": {"nodes": 2, "gpus_per_node": 4, "gpu": "A100", "network": "efa_p4d"},
    "tables": {
        "big": {
            "count": 4, "rows": 1_000_000, "dim": 128, "mean_ids": 10.0,
            "partitions_per_rank": 1.0, "placement": "modulo",
        },
        "small": {"count": 8, "rows": 100_000, "dim": 64, "mean_ids": 2.0, "module": "small"},
    },
    "dense": {"forward_gflop": 2.0, "kernels": 8, "small_kernels": 24, "parameters": 5_000_000},
}  # fmt: skip


def merged(base: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(base)
    for key, value in change.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def two_nodes(**change: Any) -> Spec:
    return decode_spec(merged(TWO_NODES, change))


def random_spec(seed: int) -> Spec:
    """Anything the model knows, small: 2 to 16 ranks, 3 steps, clocks up to 10 ms apart."""
    pick = random.Random(seed)
    nodes, per_node = pick.choice([2, 3, 4]), pick.choice([1, 2, 4])
    world = nodes * per_node
    fields: dict[str, Any] = {
        "name": f"random_{seed}",
        "seed": seed,
        "batch_per_rank": pick.choice([64, 1000]),
        "pipeline_depth": pick.choice([0, 1, 2]),
        "narrowing": pick.choice([1, 2]),
        "jitter": pick.choice([0.0, 0.02, 0.2]),
        "cluster": {
            "nodes": nodes, "gpus_per_node": per_node, "clock_skew_ms": 10.0,
            "gpu": pick.choice(list(GPUS)), "network": pick.choice(list(NETWORKS)),
        },
        "tables": {
            f"table_{index}": {
                "count": pick.choice([1, 3]), "rows": pick.choice([1, 1000, 10**6]),
                "dim": pick.choice([8, 64, 128]),
                "mean_ids": pick.choice([0.5, 10.0, 50.0]), "pooling": pick.choice(["sum", "none"]),
                "zipf": pick.choice([0.0, 0.9, 1.0, 1.3]), "module": pick.choice(["a", "b"]),
                "partitions": pick.choice([1, 2, 5]),
            }
            for index in range(pick.choice([1, 2, 4]))
        },
        "placement": {"policy": pick.choice(["greedy", "round_robin", "modulo"])},
        "dense": {
            "forward_gflop": pick.choice([0.5, 3.0]), "kernels": pick.choice([1, 7]),
            "small_kernels": pick.choice([0, 50]), "parameters": pick.choice([0, 10**6, 10**7]),
            "before_exchange_share": pick.choice([0.0, 0.3, 1.0]),
        },
        "comms": {
            "qcomms_forward": pick.choice(["fp32", "bf16", "fp16", "fp8", "int8"]),
            "qcomms_backward": pick.choice(["fp32", "fp8"]), "slowdown": pick.choice([0.0, 0.3]),
        },
        "host": {
            "sync_points": pick.choice([0, 3]), "stall_ms": pick.choice([0.0, 2.0]),
            "queue_depth": pick.choice([8, 1024]),
        },
        "input": {"loader_ms": pick.choice([0.0, 20.0]), "prefetch": pick.choice([1, 3])},
        "capture": {"steps": 3, "sequence_numbers": pick.choice([True, False]), "strays": False},
    }  # fmt: skip
    if pick.random() < 0.4:
        size = pick.choice([size for size in range(1, world + 1) if world % size == 0])
        topology = pick.choice(["all_to_all", "all_reduce"])
        fields["two_d"] = {"group_size": size, "inside_node": topology, "sync_every": 2, "sync_share": 0.5}
    if pick.random() < 0.4:
        fields["stragglers"] = [{"rank": pick.randrange(world), "compute_ms": 5.0}]
    return decode_spec(fields)
