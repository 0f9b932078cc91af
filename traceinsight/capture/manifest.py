"""``run.json``: what a run was, for readers who have only its traces. Documented in ``docs/capture.md``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

SCHEMA_VERSION = 1


def describe_tables(tables: Iterable[Any], mean_ids: float | None) -> list[dict[str, object]]:
    """Describe table configurations: name, rows, dim, pooling, features.

    Takes TorchRec's EmbeddingBagConfig, or anything with its attributes. ``mean_ids`` is the mean number of
    ids per example and feature; it stands in no configuration.
    """
    return [
        {
            "name": table.name,
            "rows": table.num_embeddings,
            "dim": table.embedding_dim,
            "pooling": getattr(getattr(table, "pooling", None), "value", None),
            "mean_ids": mean_ids,
            "features": list(table.feature_names),
        }
        for table in tables
    ]


def describe_plan(plan: Any) -> dict[str, object]:
    """Describe a TorchRec ShardingPlan: table -> sharding type, kernel and shards.

    A shard has its rank, and its rows and columns as half-open ranges. Works on the attributes alone, so that
    this package needs no torchrec.
    """
    described: dict[str, object] = {}
    for module in plan.plan.values():
        for table, sharding in module.items():
            described[table] = {
                "sharding_type": str(sharding.sharding_type),
                "kernel": str(sharding.compute_kernel),
                "ranks": list(sharding.ranks or []),
                "shards": [_describe_shard(shard) for shard in getattr(sharding.sharding_spec, "shards", [])],
            }
    return described


def _describe_shard(shard: Any) -> dict[str, object]:
    (row, column), (rows, columns) = shard.shard_offsets, shard.shard_sizes
    rank = shard.placement.rank() if shard.placement is not None else None
    return {"rank": rank, "rows": [row, row + rows], "columns": [column, column + columns]}


def describe_estimates(options: Iterable[Any]) -> dict[str, object]:
    """Describe a TorchRec planner's sharding options: table -> what it expected of each shard.

    Milliseconds per step by the planner's own model, bytes of GPU (hbm) and host (ddr) memory. An option
    without estimates is left out.
    """
    described: dict[str, object] = {}
    for option in options:
        shards = [_describe_estimate(shard) for shard in option.shards if shard.perf is not None]
        if shards:
            described[option.name] = shards
    return described


_PERF_PARTS = ("fwd_compute", "fwd_comms", "bwd_compute", "bwd_comms", "prefetch_compute", "input_dist_comms")


def _describe_estimate(shard: Any) -> dict[str, object]:
    parts = {f"{part}_ms": getattr(shard.perf, part, None) for part in _PERF_PARTS}
    return {
        "rank": shard.rank,
        **finite(parts),
        "hbm_bytes": getattr(shard.storage, "hbm", None),
        "ddr_bytes": getattr(shard.storage, "ddr", None),
    }


def finite(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return ``values`` with NaN and infinities as None: a loss that blew up must not cost the manifest."""
    return {
        name: value if value is not None and math.isfinite(value) else None for name, value in values.items()
    }
