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


def finite(values: Mapping[str, float | None]) -> dict[str, float | None]:
    """Return ``values`` with NaN and infinities as None: a loss that blew up must not cost the manifest."""
    return {
        name: value if value is not None and math.isfinite(value) else None for name, value in values.items()
    }
