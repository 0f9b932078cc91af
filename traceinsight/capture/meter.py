"""Counts ids and bytes per table on one rank while the profiler records."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

_BYTES_PER_VALUE = {"FP32": 4, "FP16": 2, "BF16": 2, "INT8": 1, "FP8": 1}


class TableMeter:
    """Watches the lookups of TorchRec's sharded tables in ``model``, by attributes and without torchrec.

    A sharded module keeps the local part of its tables in ``_lookups``: what reaches them is what other ranks
    sent here, so the counts are those of the owner. Counting reads lengths from the device and makes the host
    wait for it; it is done in profiled steps only. ``failed`` is told of tables that cannot be counted, once:
    nothing is raised into the model's forward.
    """

    def __init__(self, model: torch.nn.Module, failed: Callable[[Exception], object]) -> None:
        self.counting = False
        self._failed = failed
        self.steps = 0
        self._tables: dict[str, dict[str, int]] = {}
        for module in model.modules():
            for lookup in getattr(module, "_lookups", []):
                lookup.register_forward_pre_hook(self._try_to_count)

    def _try_to_count(self, lookup: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        if not self.counting:
            return
        try:
            self._count(lookup, arguments)
        except Exception as error:  # another TorchRec may keep its tables in another way
            self.counting = False
            self._failed(error)

    def _count(self, lookup: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        features = arguments[0]
        local = [table for group in _groups(lookup) for table in group.embedding_tables]
        # The keys of what arrives follow the tables, a key per feature.
        owners = [table for table in local for _ in table.feature_names]
        examples = features.stride()
        for table, ids in zip(owners, features.length_per_key(), strict=True):
            row = (table.local_cols or table.embedding_dim) * _value_bytes(table)
            pooled = getattr(getattr(table, "pooling", None), "value", "NONE") != "NONE"
            counts = self._tables.setdefault(table.name, {"ids": 0, "read_bytes": 0, "returned_bytes": 0})
            counts["ids"] += int(ids)
            counts["read_bytes"] += int(ids) * row
            counts["returned_bytes"] += (examples if pooled else int(ids)) * row

    def describe(self) -> dict[str, object]:
        """Return the profiled steps, and per table the totals over them."""
        return {"steps": self.steps, "tables": self._tables}


def _groups(lookup: torch.nn.Module) -> list[Any]:
    return list(getattr(lookup, "grouped_configs", []))


def _value_bytes(table: Any) -> int:
    """Return the size of a stored value; 4 where the type is not known."""
    return _BYTES_PER_VALUE.get(str(getattr(getattr(table, "data_type", None), "value", "FP32")), 4)


def merge(per_rank: dict[int, dict[str, Any]], world_size: int) -> dict[str, object]:
    """Join the ranks' counts into means per profiled step: table -> rank -> ids and bytes."""
    tables: dict[str, dict[str, dict[str, float]]] = {}
    for rank, counted in sorted(per_rank.items()):
        steps = counted["steps"]
        for table, counts in counted["tables"].items():
            per_step = {f"{name}_per_step": round(value / steps, 3) for name, value in counts.items()}
            tables.setdefault(table, {})[str(rank)] = per_step
    return {
        "steps": max((counted["steps"] for counted in per_rank.values()), default=0),
        "missing_ranks": [rank for rank in range(world_size) if rank not in per_rank],
        "tables": tables,
    }
