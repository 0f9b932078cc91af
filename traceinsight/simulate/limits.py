"""What a specification may ask for as a whole, beyond the range of each of its fields.

A run must fit into memory, its counts into what a trace may hold, and a step into an hour: all its times are
then far inside int64 nanoseconds.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from traceinsight.base.errors import UsageError
from traceinsight.base.units import format_ns
from traceinsight.simulate.sharding import partition_count
from traceinsight.simulate.spec import Spec
from traceinsight.simulate.workload import PCIE_BYTES_PER_NS, Workload

LONGEST_STEP_NS = 3_600 * 10**9
MOST_PARTITIONS = 1_000_000
MOST_PAIRS = 2**26
"""Pairs of ranks that exchange, over all modules: four matrices of them, 8 bytes each, are held."""
MOST_ROWS = 10**8
"""Trace rows of all ranks: about 100 bytes each."""
MOST_OPERATIONS = 1_000_000
"""Issued by a rank in all steps: about 0.1 ms each."""

_ROWS_PER_OPERATION = 3  # operator, launch, kernel
_PHASES = 4
_FIXED_OPERATIONS = 60
_MODULE_OPERATIONS = 24


def size_problems(spec: Spec) -> Iterator[tuple[str, str]]:
    """What would not fit into memory: (what is wrong, what is allowed)."""
    tables = spec.tables.values()
    partitions = sum(table.count * partition_count(table, spec.world_size) for table in tables)
    if partitions > MOST_PARTITIONS:
        yield (
            f"tables: {partitions:,} partitions (count x partitions).",
            f"Allowed: <= {MOST_PARTITIONS:,} in all.",
        )
    pairs = spec.group_size**2 * len({table.module for table in tables})
    if pairs > MOST_PAIRS:
        yield (
            f"two_d.group_size: {spec.group_size:,} ranks exchange with each other (without two_d: nodes x "
            "gpus_per_node).",
            f"Allowed: ranks^2 x modules <= {MOST_PAIRS:,}.",
        )
    steps = spec.capture.steps + spec.capture.warmup
    operations = steps * _operations(spec)
    rows = operations * spec.world_size * _ROWS_PER_OPERATION
    if rows > MOST_ROWS or operations > MOST_OPERATIONS:
        yield (
            f"capture.steps: {steps:,} steps with warmup, of {_operations(spec):,} operations on "
            f"{spec.world_size:,} ranks, are too much to simulate.",
            f"Allowed: <= {MOST_OPERATIONS:,} operations and <= {MOST_ROWS:,} trace rows (three per "
            "operation and rank); take fewer steps, ranks, kernels or gradient buckets (dense.parameters).",
        )


def check_step(work: Workload) -> None:
    """Refuse a step of more than an hour.

    Raises:
        UsageError: Names the fields that most of it comes from.

    """
    spent_ns = _spent_ns(work)
    total_ns = sum(spent_ns.values())
    if total_ns < LONGEST_STEP_NS:
        return
    fields = max(spent_ns, key=lambda one: spent_ns[one])
    raise UsageError(
        f"{fields}: {format_ns(round(spent_ns[fields]))} of each step.",
        where=work.spec.name,
        what_to_do=f"Allowed: below {format_ns(LONGEST_STEP_NS)} for all parts of a step together.",
    )


def _operations(spec: Spec) -> int:
    """About how many operations a rank issues per step."""
    dense = spec.dense
    modules = len({table.module for table in spec.tables.values()})
    buckets = math.ceil(dense.parameters * 4 / (spec.comms.ddp_bucket_mb * 1e6))
    kernels = len(dense.forward_kernels_us) or dense.kernels
    own = 3 * kernels + dense.small_kernels + spec.host.sync_points + buckets
    return own + _FIXED_OPERATIONS + _MODULE_OPERATIONS * modules


def _spent_ns(work: Workload) -> Mapping[str, float]:
    """Everything a step consists of, one after the other, by the fields it comes from."""
    spec, host, source = work.spec, work.spec.host, work.spec.input
    compute = exchange = 0.0
    for one in work.modules:
        kernels = [one.lookup_ns, one.update_ns, one.combine_ns]
        compute += _longest(*kernels, *one.encode_ns.values(), *one.decode_ns.values())
        exchange += sum(max(way.transfer_ns) for way in (one.forward, one.backward, one.lengths, one.values))
    reductions = [*work.buckets, *([work.replica_sync] if work.replica_sync else [])]
    late_ms = sum(one.compute_ms + one.host_ms + one.input_ms for one in spec.stragglers)
    call_us = host.launch_us + host.collective_us + (spec.cluster.launch_latency_us or 0)
    ids = "tables (mean_ids, dim, partitions) with batch_per_rank"
    first_ms = spec.capture.first_step_extra_ms
    return {
        f"{ids}, over cluster.hbm_gbps": compute + work.bucketize_ns * (1 + len(work.modules)),
        f"{ids}, over cluster.link_gbps and node_gbps": exchange + max(work.splits.transfer_ns),
        "dense.forward_gflop (or forward_kernels_us) with batch_per_rank": sum(work.forward_ns)
        + sum(work.backward_ns),
        "dense.small_kernels x small_kernel_us": spec.dense.small_kernels * spec.dense.small_kernel_us * 1e3,
        "dense.parameters or two_d, over cluster.hbm_gbps, link_gbps and node_gbps": work.optimizer_ns
        + sum(max(one.transfer_ns) for one in reductions),
        "host (launch_us, collective_us, phase_us) and cluster.launch_latency_us": (
            _operations(spec) * call_us + _PHASES * host.phase_us
        )
        * 1e3,
        "host.stall_ms or capture.first_step_extra_ms": (host.stall_ms + first_ms) * 1e6,
        "input (loader_ms, fetch_us, dense_features)": source.loader_ms * 1e6
        + source.fetch_us * 1e3
        + work.batch_bytes / PCIE_BYTES_PER_NS,
        "stragglers": late_ms * 1e6,
    }


def _longest(*work_ns: NDArray[np.float64]) -> float:
    """The sum of each kernel's longest time over the ranks."""
    return sum(float(one.max(initial=0.0)) for one in work_ns)
