"""Cross-node all-to-all: the exchange of embeddings spans nodes, and its transfer takes step time.

Detects
    Exposed transfer of all-to-alls of vectors and gradients whose group has members on several nodes, at
    least ``MIN_SHARE`` of the step window.
Why it costs
    In an all-to-all over n nodes all but 1/n of the bytes leave the node, over adapters that are many times
    slower than the links inside it, and every rank sends a message to every other.
Evidence
    Exposed transfer, ranks and nodes of the group, memory for a copy of the tables per node.
Remedy
    2D parallelism: a whole copy of the tables per group of ranks inside a node; groups synchronise their
    weights now and then, in large reductions.
How the gain is predicted
    Replayed with the exchange inside each group and the replicas' sync added, as often as it costs
    ``MAX_SYNC_SHARE`` of a step (`2d=<ranks per group>,sync=<steps>`). Before that a ceiling: the exposed
    transfer of these exchanges.
When this is wrong
    Where a copy of the tables does not fit the group: the rule then takes the smallest group of nodes whose
    memory holds one, or stays silent. Optimizer states other than row-wise need more than it counts.
"""

from __future__ import annotations

from math import ceil

from traceinsight.advice.exchanges import below_stake, exposed_ns, freed, vector_rows
from traceinsight.advice.measurements import Measurements
from traceinsight.advice.nodes import NO_LAYOUT, best_node_gbps, layout_matters, off_node_rows
from traceinsight.advice.rule import (
    Clean,
    Found,
    Outcome,
    Rule,
    ceiling,
    percent,
    severity_of,
    share_evidence,
)
from traceinsight.base.hardware import GPUS, gpu_key
from traceinsight.diagnosis import CommunicationRow, Evidence, Finding

MAX_TABLE_MEMORY_SHARE = 0.9
"""Share of a GPU's memory. What is left holds the dense part, activations and buffers: above it a copy of the
tables plainly does not fit."""

MAX_SYNC_SHARE = 0.05
"""Share of the step window that syncs may take on average: as much as the least exchange worth removing."""

MAX_SYNC_STEPS = 1000
"""Steps between syncs. Replicas that meet less often are models of their own."""

_ROW_OVERHEAD_BYTES = 4  # row-wise optimizer state
_VALUE_BYTES = 4  # tables are trained in FP32


def judge(measurements: Measurements) -> Outcome:
    """Judge the exchanges that leave their node, and find the smallest group that holds the tables."""
    what = "exchange of embeddings between nodes"
    exchanges = [row for row in vector_rows(measurements) if row.op == "all_to_all"]
    if layout_matters(measurements):
        return below_stake(measurements, exchanges, "exchange of embeddings") or NO_LAYOUT
    rows = off_node_rows(measurements, exchanges)
    if (settled := below_stake(measurements, rows, what)) is not None:
        return settled
    size = _group_size(measurements)
    if size is None:
        share = measurements.share(exposed_ns(measurements, rows))
        return Clean(
            f"{what}: {percent(share)} of the step, but no group of whole nodes smaller than the job is "
            "known to hold a copy of the tables"
        )
    return Found([_finding(measurements, rows, size)])


def _memory_gb(measurements: Measurements, group_size: int) -> float | None:
    """Tables and their optimizer state per GPU of a group, GB; None when the tables are not known."""
    total = sum(
        table.rows * (table.dim * _VALUE_BYTES + _ROW_OVERHEAD_BYTES) for table in measurements.job.tables
    )
    return total / group_size / 1e9 if total else None


def _group_size(measurements: Measurements) -> int | None:
    """The smallest group of whole nodes that divides the job and holds the tables, or None."""
    per_node, nodes = measurements.job.ranks_per_node, measurements.job.nodes
    if per_node is None or nodes is None:
        return None
    key = gpu_key(measurements.run.device)
    for count in range(1, nodes):
        size = count * per_node
        needed = _memory_gb(measurements, size)
        room = GPUS[key].memory_gb * MAX_TABLE_MEMORY_SHARE if key is not None else None
        if size > 1 and nodes % count == 0 and (needed is None or room is None or needed <= room):
            return size
    return None


def _finding(measurements: Measurements, rows: list[CommunicationRow], size: int) -> Finding:
    share = measurements.share(exposed_ns(measurements, rows))
    needed = _memory_gb(measurements, size)
    every = _sync_every(measurements, size)
    memory = (
        f"needs about {needed:.3g} GB per GPU" if needed is not None else "must fit; its size is not known"
    )
    return Finding(
        rule=RULE.id,
        severity=severity_of(share),
        confidence="medium",
        title=(f"The embedding exchange crosses nodes: {percent(share)} of the step is its exposed transfer"),
        ranks=list(measurements.run.ranks),
        evidence=[
            share_evidence("exposed_cross_node_exchange", share, "of the step window, mean over ranks"),
            Evidence(
                metric="nodes", value=measurements.job.nodes or 0, unit="count", where="that the job spans"
            ),
            *(
                [
                    Evidence(
                        metric="table_memory",
                        value=needed * 1e9,
                        unit="bytes",
                        where=f"per GPU, a copy of the tables on {size} ranks (FP32, row-wise optimizer)",
                    )
                ]
                if needed is not None
                else []
            ),
        ],
        gain=ceiling(measurements.step_ns, freed(measurements, exposed_ns(measurements, rows))),
        action=_action(measurements, size, every, memory),
        quality_risk=(
            "Replicas drift apart between syncs: compare normalized entropy over several seeds, and "
            "synchronise more often, or only the rows that changed, where it moves."
        ),
        edits=[f"2d={size}" if every == 1 else f"2d={size},sync={every}"],
    )


def _sync_every(measurements: Measurements, size: int) -> int:
    """Steps between syncs that keep them below ``MAX_SYNC_SHARE``; 1 where their cost is not known.

    An all-reduce between g replicas passes 2 (g-1)/g of a GPU's tables through its share of the adapters.
    """
    needed, reached = _memory_gb(measurements, size), best_node_gbps(measurements)
    per_node, world = measurements.job.ranks_per_node, measurements.run.world_size
    if needed is None or reached is None or per_node is None or world is None:
        return 1
    replicas = world // size
    sync_ns = 2 * (replicas - 1) / replicas * needed * 1e9 / (reached / per_node)
    return min(max(1, ceil(sync_ns / (MAX_SYNC_SHARE * measurements.step_ns))), MAX_SYNC_STEPS)


def _action(measurements: Measurements, size: int, every: int, memory: str) -> str:
    if measurements.run.sharding_group_size is not None:
        return (
            "The job is 2D parallel already, but its exchange still crosses nodes: choose consecutive ranks "
            f"for a sharding group (sharding_group_size={size}, use_inter_host_allreduce=True in "
            "DMPCollection), so that only the replicas' sync crosses nodes."
        )
    often = "step" if every == 1 else f"{every} steps"
    return (
        f"Shard over groups of {size} ranks with DMPCollection(sharding_group_size={size}, "
        f"use_inter_host_allreduce=True) and call sync() every {often}. A copy of the tables per group "
        f"{memory}."
    )


RULE = Rule("cross-node-all-to-all", "The embedding exchange leaves the node", judge)
