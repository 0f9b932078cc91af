"""``truth.json`` and ``run.json`` of a simulated run, as plain data."""

from __future__ import annotations

from collections import defaultdict
from importlib import metadata
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from traceinsight.simulate.machine import Meeting
from traceinsight.simulate.sharding import Shard, all_tables

if TYPE_CHECKING:
    from traceinsight.simulate.run import SimulatedRun

TRUTH_SCHEMA_VERSION = 1
MANIFEST_SCHEMA_VERSION = 1  # of docs/capture.md
_STARTED = "2025-10-09T08:53:20+00:00"  # the traces' base time


def truth_document(run: SimulatedRun) -> dict[str, Any]:
    """Everything that was injected, and what came of it."""
    spec, truth = run.spec, run.truth
    return {
        "schema_version": TRUTH_SCHEMA_VERSION,
        "simulated": True,
        "spec": msgspec.to_builtins(spec),
        "throughput": {"step_ns": round(truth.step_ns), "examples_per_s": round(truth.examples_per_s, 1)},
        "steps": [
            {
                "step": step.step,
                "window_ns": step.window_ns.tolist(),
                "compute_ns": step.compute_ns.tolist(),
                "exposed_transfer_ns": step.exposed_transfer_ns.tolist(),
                "exposed_wait_ns": step.exposed_wait_ns.tolist(),
            }
            for step in truth.steps
        ],
        "collectives": [_collective(one) for one in run.collectives if one.step >= spec.capture.first_step],
        "injected": {
            "clock_offset_ns": run.clock_offset_ns.tolist(),
            "late": _late(run),
            "missing_ranks": list(spec.capture.missing_ranks),
        },
        "tables": _table_ranks(run),
    }


def _collective(one: Meeting) -> dict[str, Any]:
    payload = one.payload
    groups = [
        {
            "ranks": list(ranks),
            "transfer_ns": int(one.transfer_ns[ranks[0]]),
            "last_rank": ranks[int(np.argmax(one.arrival_ns[list(ranks)]))],
        }
        for ranks in payload.members
    ]
    return {
        "step": one.step,
        "label": one.label,
        "phase": one.phase,
        "operation": payload.operation,
        "dtype": payload.dtype,
        "groups": groups,
        "wait_ns": (one.last_ns - one.arrival_ns).tolist(),
        "in_bytes": (payload.in_elements * payload.element_bytes).tolist(),
        "off_node_bytes": payload.off_node_bytes.tolist(),
    }


def _late(run: SimulatedRun) -> list[dict[str, Any]]:
    """Who was made late, where and by how much."""
    capture = run.spec.capture
    return [
        {"rank": one.rank, "kind": kind, "ms": getattr(one, f"{kind}_ms"), "step": capture.first_step + index}
        for one in run.spec.stragglers
        for kind in ("compute", "host", "input")
        if getattr(one, f"{kind}_ms") > 0
        for index in range(capture.steps)
        if not one.steps or index in one.steps
    ]


def _table_ranks(run: SimulatedRun) -> dict[str, list[int]]:
    """Table -> the owner of each partition, as rank of the first sharding group."""
    first = run.workload.groups[0]
    found: dict[str, list[int]] = defaultdict(list)
    for shard in run.sharding.shards:
        found[shard.table].append(first[shard.owner])
    return dict(found)


def manifest_document(run: SimulatedRun) -> dict[str, Any]:
    """The run manifest, with the field names of docs/capture.md."""
    spec, truth = run.spec, run.truth
    per_node = spec.cluster.gpus_per_node
    capture = spec.capture
    per_rank = spec.batch_per_rank * spec.world_size
    return {
        "schema_version": MANIFEST_SCHEMA_VERSION,
        "simulated": True,
        "run_id": spec.name,
        "started": _STARTED,
        "world_size": spec.world_size,
        "nodes": [
            {"node": node, "ranks": list(range(node * per_node, (node + 1) * per_node))}
            for node in range(spec.cluster.nodes)
        ],
        "batch_per_rank": spec.batch_per_rank,
        "tables": _tables(run),
        "sharding_plan": _plan(run),
        "measured_tables": _measured(run),
        "qcomms": {"forward": spec.comms.qcomms_forward, "backward": spec.comms.qcomms_backward},
        "parallelism": None if spec.two_d is None else {"kind": "2d", **msgspec.to_builtins(spec.two_d)},
        "pipeline": {"depth": spec.pipeline_depth},
        "hardware": {"gpu": spec.cluster.gpu, "network": spec.cluster.network, "gpus_per_node": per_node},
        "versions": {"traceinsight": _own_version()},
        "environment": {},
        "capture": {"wait": 0, "warmup": capture.first_step, "active": capture.steps},
        "steps": [
            {
                "step": step.step,
                "wall_ms": round(float(step.window_ns.mean()) / 1e6, 6),
                "examples_per_s": round(per_rank / float(step.window_ns.mean()) * 1e9, 3),
            }
            for step in truth.steps
        ],
    }


def _own_version() -> str | None:
    """Of the installed distribution: the package itself lies on a floor above."""
    try:
        return metadata.version("traceinsight-recsys")
    except metadata.PackageNotFoundError:
        return None


def _tables(run: SimulatedRun) -> list[dict[str, Any]]:
    narrowing = run.spec.narrowing
    return [
        {
            "name": name,
            "rows": table.rows * narrowing,
            "dim": table.dim // narrowing,
            "pooling": table.pooling.upper(),
            "mean_ids": table.mean_ids,
            "features": [f"{name}_ids"],
        }
        for name, table in all_tables(run.spec)
    ]


def _shards_by_table(run: SimulatedRun) -> dict[str, list[Shard]]:
    found: dict[str, list[Shard]] = defaultdict(list)
    for shard in run.sharding.shards:
        found[shard.table].append(shard)
    return found


def _plan(run: SimulatedRun) -> dict[str, Any]:
    """Shards of the first sharding group; the replicas have the same at their own ranks."""
    first = run.workload.groups[0]
    return {
        table: {
            "sharding_type": "table_wise" if len(shards) == 1 else "hash_partitioned",
            "kernel": "fused",
            "ranks": sorted({first[shard.owner] for shard in shards}),
            "shards": [
                {"rank": first[shard.owner], "rows": list(shard.rows), "columns": [0, shard.dim]}
                for shard in shards
            ],
        }
        for table, shards in _shards_by_table(run).items()
    }


def _measured(run: SimulatedRun) -> dict[str, Any]:
    """Ids looked up and bytes read and returned per step, by table and owner; every group has the same."""
    examples = run.spec.batch_per_rank * run.spec.group_size
    sums: dict[tuple[str, int], list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    for shard in run.sharding.shards:
        entry = sums[shard.table, shard.owner]
        entry[0] += shard.ids * examples
        entry[1] += shard.ids * shard.dim * 4 * examples
        entry[2] += shard.vectors * shard.dim * 4 * examples
    names = ("ids_per_step", "read_bytes_per_step", "returned_bytes_per_step")
    tables: dict[str, dict[str, dict[str, int]]] = defaultdict(dict)
    for group in run.workload.groups:
        for (table, owner), amounts in sorted(sums.items()):
            tables[table][str(group[owner])] = dict(zip(names, map(round, amounts), strict=True))
    return {"steps": run.spec.capture.steps, "missing_ranks": [], "tables": dict(tables)}
