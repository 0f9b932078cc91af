"""What was injected and what it really cost, for ``run.json``: the truth that an analysis is held against."""

from __future__ import annotations

import statistics
from typing import Any

from training.config import EVERY_RANK, Config
from training.faults import Suffered

_WHERE = {
    "late_rank": "forward, before the embedding exchange",
    "slow_input": "while the next batch is loaded",
    "host_sync": "forward, before the embedding exchange",
    "tiny_kernels": "forward, before the embedding exchange",
}


def ground_truth(
    config: Config, suffered: list[Suffered], placements: list[dict[str, list[int]]]
) -> list[dict[str, Any]]:
    """Describe the injected faults: what, where, how long it took and what is known of its cost.

    ``suffered`` holds what each rank measured, ``placements`` one table -> owning ranks per rank. What is not
    known is None, with the reason.
    """
    kind = config.fault.kind
    if kind == "none":
        return []
    if kind == "hot_partition":
        return [_hot_partition(config, suffered, placements)]
    if kind == "slow_link":
        return [_slow_link(config, suffered[0])]
    return [_of_ranks(config, suffered)]


def _of_ranks(config: Config, suffered: list[Suffered]) -> dict[str, Any]:
    fault = config.fault
    ranks = list(range(config.world_size)) if fault.rank == EVERY_RANK else [fault.rank]
    described: dict[str, Any] = {
        "kind": fault.kind,
        "rank": None if fault.rank == EVERY_RANK else fault.rank,
        "ranks": ranks,
        "where": _WHERE[fault.kind],
        "configured_ms_per_step": None if fault.kind == "tiny_kernels" else fault.delay_ms,
        "count": fault.count,
    }
    if fault.kind == "host_sync" and config.device == "cuda":
        described["configured_ms_per_step"] = None
        return described | _unknown("a synchronisation costs the launches it holds up, which no clock shows")
    # Ranks that suffer at the same time do not add up: the step waits for the slowest.
    took_ms = [max(costs) for costs in zip(*(suffered[rank].took_ms for rank in ranks), strict=True)]
    return described | {"measured_ms_per_step": _rounded(took_ms)} | _cost(config, suffered, took_ms)


def _cost(config: Config, suffered: list[Suffered], took_ms: list[float]) -> dict[str, Any]:
    """Return how much longer the others waited for the rank than they would have without the fault."""
    if config.fault.rank == EVERY_RANK or config.world_size == 1:
        return {}
    if config.device == "cuda" or config.local_world_size < config.world_size:
        reason = "when ranks are ready can be compared on the clock of one machine's CPUs only"
        return {"cost_ms_per_step": None, "cost_not_known": reason}
    late = config.fault.rank
    others = [one.ready_ns for rank, one in enumerate(suffered) if rank != late]
    behind_ms = [
        (ready - max(rest)) / 1e6 for ready, *rest in zip(suffered[late].ready_ns, *others, strict=True)
    ]
    cost_ms = [max(0.0, min(took, behind)) for took, behind in zip(took_ms, behind_ms, strict=True)]
    return {"cost_ms_per_step": _rounded(cost_ms)}


def _slow_link(config: Config, counted: Suffered) -> dict[str, Any]:
    return {
        "kind": config.fault.kind,
        "rank": None,
        "ranks": list(range(config.world_size)),
        "link_mbit": config.fault.link_mbit,
        "where": "every exchange; the link is shared by all ranks",
        "measured_ms_per_step": _rounded(counted.took_ms),
    }


def _hot_partition(
    config: Config, suffered: list[Suffered], placements: list[dict[str, list[int]]]
) -> dict[str, Any]:
    fault = config.fault
    table = f"table_{fault.table}_part_{fault.partition}"
    owners = sorted({rank for placement in placements for rank in placement[table]})
    others = [rank for rank in range(len(suffered)) if rank not in owners]
    lookup_ms = [one.took_ms for one in suffered]
    described: dict[str, Any] = {
        "kind": fault.kind,
        "rank": owners[0] if len(owners) == 1 else None,
        "ranks": owners,
        "table": table,
        "share": fault.share,
        "where": "forward, the lookups of the owner",
        "lookup_ms_per_rank": [round(statistics.median(ms), 3) if ms else None for ms in lookup_ms],
    }
    if not others:
        return described | _unknown("every rank owns the partition, in some group of replicas")
    if not any(any(lookup_ms[rank]) for rank in owners):
        return described | _unknown("no lookup of the owner was seen")
    excess = [
        max(costs[rank] for rank in owners) - max(costs[rank] for rank in others)
        for costs in zip(*lookup_ms, strict=True)
    ]
    return described | {"measured_ms_per_step": _rounded(excess)}


def _unknown(reason: str) -> dict[str, Any]:
    return {"measured_ms_per_step": None, "not_measured": reason}


def _rounded(milliseconds: list[float]) -> list[float]:
    return [round(value, 3) for value in milliseconds]
