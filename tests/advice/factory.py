"""Measurements from the few numbers a case states.

Durations are us of a step of 1000 us, so that 50 reads as 5 % of the step. A number stands for every rank, a
list gives one per rank; what no part takes is compute.
"""

from collections.abc import Mapping
from typing import Any

from traceinsight.advice.job import JobFacts, Table
from traceinsight.advice.measurements import CaptureFacts, Measurements
from traceinsight.analyses.host_link import HostLink
from traceinsight.diagnosis import (
    Collective,
    CommunicationRow,
    KernelFamilyRow,
    LoadBalance,
    NanosecondRange,
    Partition,
    Run,
    ShardRow,
    Straggler,
)

US = 1_000
STEP_US = 1000
_PARTS = {
    "transfer": "exposed_comm_transfer_ns",
    "wait": "exposed_comm_wait_ns",
    "unsplit": "exposed_comm_unsplit_ns",
    "copy": "exposed_copy_ns",
}
_FULL = {
    "host_recorded": True,
    "launches_recorded": True,
    "step_marks": True,
    "input_marks": True,
    "incomplete_collectives": True,
}


def measurements(case: Mapping[str, Any]) -> Measurements:
    """Of a case: captured, steps, missing, quantized, parts, idle, communication, stragglers, capture,
    shards, balance, job, host_link, kernels (family, count, busy_us of a step).

    A row of ``communication`` may list its collectives of a step as ``each``. The job has ``nodes`` of equal
    size, ``network``, ``environment``, ``tables``, ``wire_formats``, ``ids_sent_ahead``.
    """
    ranks, steps = case.get("captured", 4), case.get("steps", 3)
    capture = dict(case.get("capture", {}))
    recorded = capture.pop("device_recorded", list(range(ranks)))
    return Measurements(
        run=_run(case, ranks, steps),
        partition=[_row(case, rank, step) for rank in recorded for step in range(steps)],
        communication=[_kind(row) for row in case.get("communication", [])],
        stragglers=[_straggler(row, steps) for row in case.get("stragglers", [])],
        stragglers_not_judged=case.get("stragglers_not_judged"),
        capture=CaptureFacts(device_recorded=frozenset(recorded), captured_steps=steps, **(_FULL | capture)),
        device_word=case.get("device_word", "GPU"),
        collectives=[
            _collective(row, one, ranks, step)
            for row in case.get("communication", [])
            for step in range(steps)
            for one in row.get("each", [])
        ],
        job=_job(case.get("job", {}), ranks + case.get("missing", 0)),
        shards=[_shard(row) for row in case.get("shards", [])],
        load_balance=[_balance(row) for row in case.get("balance", [])],
        kernels=[_family(row) for row in case.get("kernels", [])],
        host_link=HostLink(**case["host_link"]) if "host_link" in case else None,
    )


def _family(row: Mapping[str, Any]) -> KernelFamilyRow:
    return KernelFamilyRow(
        family=row["family"],
        busy_ns=row["busy_us"] * US,
        share=1.0,
        count_per_step=row["count"],
        top_kernels=[],
    )


def _run(case: Mapping[str, Any], ranks: int, steps: int) -> Run:
    missing = case.get("missing", 0)
    return Run(
        world_size=ranks + missing, ranks=list(range(ranks)),
        missing_ranks=list(range(ranks, ranks + missing)), device=case.get("device", "GPU"), backend="nccl",
        steps=list(range(steps)), dropped_steps=[], other_runs=[],
        step_source=case.get("step_source", "ProfilerStep"), files=[],
        quantized_comms=case.get("quantized", []), batch_per_rank=case.get("batch"),
        sharding_group_size=case.get("sharding_group_size"),
    )  # fmt: skip


def _of(value: float | list[float], rank: int) -> int:
    return round((value[rank] if isinstance(value, list) else value) * US)


def _row(case: Mapping[str, Any], rank: int, step: int) -> Partition:
    # Kinds are exposed one after the other, unless a case says how much transfer a rank has in all.
    one_by_one = {"transfer": sum(row.get("transfer", 0) for row in case.get("communication", []))}
    stated = one_by_one | case.get("parts", {})
    parts = {_PARTS[name]: _of(value, rank) for name, value in stated.items()}
    parts = dict.fromkeys(_PARTS.values(), 0) | parts
    causes = {cause: _of(value, rank) for cause, value in case.get("idle", {}).items()}
    idle = sum(causes.values())
    return Partition(
        rank=rank, step=step, window_ns=STEP_US * US, idle_ns=idle, idle_by_cause_ns=causes,
        compute_ns=STEP_US * US - idle - sum(parts.values()), **parts,
    )  # fmt: skip


def _kind(row: Mapping[str, Any]) -> CommunicationRow:
    ns = {name: _of(row.get(name, 0), 0) for name in ("transfer", "wait", "unsplit")}
    exposed = sum(ns.values())
    return CommunicationRow(
        op=row.get("op", "all_to_all"), label=row.get("label"), phase=row.get("phase", "forward"),
        count_per_step=1.0, bytes_per_step=row.get("bytes"), dtype=row.get("dtype"),
        busy_ns=exposed, exposed_ns=exposed,
        exposed_transfer_ns=ns["transfer"], exposed_wait_ns=ns["wait"], exposed_unsplit_ns=ns["unsplit"],
        exposed_share=exposed / (STEP_US * US), bus_gbps=row.get("bus_gbps"),
    )  # fmt: skip


def _collective(row: Mapping[str, Any], one: Mapping[str, Any], ranks: int, step: int) -> Collective:
    return Collective(
        op=row.get("op", "all_to_all"), label=row.get("label"), phase=row.get("phase", "forward"), group="",
        step=step, ranks=one.get("ranks", list(range(ranks))), unmatched_ranks=one.get("unmatched", []),
        bytes=one.get("bytes"), dtype=row.get("dtype"),
        transfer_ns=_of(one["transfer"], 0) if "transfer" in one else None, wait_ns={}, bus_gbps=None,
        algorithm_gbps=None, size_imbalance=None, last_rank=None, synchronising=True,
    )  # fmt: skip


def _job(job: Mapping[str, Any], ranks: int) -> JobFacts:
    facts = dict(job)
    nodes = facts.pop("nodes", None)
    facts["tables"] = [Table(**table) for table in facts.get("tables", [])]
    return JobFacts(
        node_of={rank: rank * nodes // ranks for rank in range(ranks)} if nodes else None, **facts
    )


def _straggler(row: Mapping[str, Any], steps: int) -> Straggler:
    late = _of(row["lateness"], 0)
    return Straggler(
        ranks=row["ranks"], last_share=0.9, lateness_ns=NanosecondRange(low=late, expected=late, high=late),
        ceiling_ns=_of(row["ceiling"], 0), cause=row.get("cause", "compute"), confidence="high",
        persistence="persistent", steps_late=steps, steps_judged=steps, behind_median_ns=late, detail="So.",
        tables=row.get("tables", []),
    )  # fmt: skip


def _shard(row: Mapping[str, Any]) -> ShardRow:
    ids = row.get("ids")
    return ShardRow(
        rank=row["rank"], table=row["table"], rows=1000, dim=16, ids_per_step=ids, share_of_rank=0.5,
        share_of_all=0.1, read_bytes_per_step=None if ids is None else 64 * ids,
        returned_bytes_per_step=row.get("returned"), planned_ns=None,
    )  # fmt: skip


def _balance(row: Mapping[str, Any]) -> LoadBalance:
    return LoadBalance(
        measure=row["measure"], largest_rank=row.get("rank", 1), largest=row["largest"], mean=row["mean"],
        imbalance=row["largest"] / row["mean"],
    )  # fmt: skip
