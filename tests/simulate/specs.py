"""Small specifications, and merging changes into them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
