"""``simulate``: from a specification to a run in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from traceinsight.simulate.limits import check_step
from traceinsight.simulate.machine import DEVICE_KINDS, Meeting, Row
from traceinsight.simulate.program import Program
from traceinsight.simulate.sharding import Sharding
from traceinsight.simulate.spec import Spec
from traceinsight.simulate.truth import Truth, measure_truth
from traceinsight.simulate.workload import Workload, build_workload

Int64 = NDArray[np.int64]
_SKEW_STREAM, _LOSS_STREAM = 1, 2
"""Random numbers of different purposes come from different streams of the seed."""


@dataclass(frozen=True)
class SimulatedRun:
    """A run as it happened, on one common clock that starts at 0.

    Attributes:
        spec: What was simulated.
        workload: What each operation costs and moves.
        rows: Every event of all ranks in program order: those of the captured steps, and device work launched
            before that still ran on some rank when the capture began.
        collectives: Every collective in program order; those of the steps before the capture, too.
        capture_start_ns: Shape (ranks,): begin of the first captured step on each rank's host.
        clock_offset_ns: Shape (ranks,): what each rank's trace shows beyond the common clock.
        hip: Whether runtime calls have HIP's names.

    """

    spec: Spec
    workload: Workload
    rows: Sequence[Row]
    collectives: Sequence[Meeting]
    capture_start_ns: Int64
    clock_offset_ns: Int64
    hip: bool

    @property
    def sharding(self) -> Sharding:
        """The plan of one sharding group."""
        return self.workload.sharding

    @cached_property
    def truth(self) -> Truth:
        """What the analysis should find."""
        return measure_truth(self.spec, self.rows, [self.collectives[at] for at in self._recorded()])

    def _recorded(self) -> list[int]:
        return [row.collective for row in self.rows if row.kind == "kernel" and row.collective is not None]

    def columns(self, rank: int) -> dict[str, Int64 | list[str]]:
        """One rank's events as columns: name, kind, lane, start_ns, dur_ns, correlation; common clock."""
        return {
            "name": [row.name for row in self.rows],
            "kind": [row.kind for row in self.rows],
            "lane": [str(row.lane) for row in self.rows],
            "start_ns": np.array([row.start_ns[rank] for row in self.rows], dtype=np.int64),
            "dur_ns": np.array([row.dur_ns[rank] for row in self.rows], dtype=np.int64),
            "correlation": np.array([row.correlation for row in self.rows], dtype=np.int64),
        }

    def lost_events(self, rank: int, count: int, candidates: Int64) -> frozenset[int]:
        """Which of ``count`` rows the profiler of a rank lost; only ``candidates`` (GPU events) can be."""
        capture = self.spec.capture
        chosen = not capture.dropped_kernel_ranks or rank in capture.dropped_kernel_ranks
        if not capture.dropped_kernel_share or not chosen:
            return frozenset()
        drawn = np.random.default_rng((self.spec.seed, _LOSS_STREAM, rank)).random(count)
        return frozenset(candidates[drawn[candidates] < capture.dropped_kernel_share].tolist())

    def process_groups(self, rank: int) -> list[dict[str, object]]:
        """``pg_config`` of one rank: the default group, and with 2D its sharding and replica group."""
        found = {"0": ("default_pg", tuple(range(self.spec.world_size)))}
        payloads = [self.workload.splits.payload]
        if self.workload.replica_sync is not None:
            payloads.append(self.workload.replica_sync.payload)
        for payload in payloads:
            for name, members in zip(payload.group_names, payload.members, strict=True):
                if rank in members:
                    found[name] = (payload.description, members)
        return [
            {
                "pg_name": name,
                "pg_desc": description,
                "backend_config": "cuda:nccl",
                "pg_size": len(members),
                "ranks": list(members),
            }
            for name, (description, members) in found.items()
        ]


def simulate(spec: Spec) -> SimulatedRun:
    """Run the model. The same specification gives the same run, bit for bit.

    Raises:
        UsageError: A step would take an hour or more, or move more than any collective does.

    """
    workload = build_workload(spec)
    check_step(workload)
    program = Program(workload)
    program.run()
    first, strays = spec.capture.first_step, spec.capture.strays
    rows = [
        row
        for row in program.machine.rows
        if row.step >= first or (strays and _reaches_into(row, program.capture_start_ns))
    ]
    per_node = np.random.default_rng((spec.seed, _SKEW_STREAM)).uniform(-1, 1, spec.cluster.nodes)
    offsets = np.rint(per_node * spec.cluster.clock_skew_ms * 1e6).astype(np.int64)
    return SimulatedRun(
        spec=spec,
        workload=workload,
        rows=rows,
        collectives=program.machine.collectives,
        capture_start_ns=program.capture_start_ns,
        clock_offset_ns=np.repeat(offsets, spec.cluster.gpus_per_node),
        hip=program.names.hip,
    )


def _reaches_into(row: Row, capture_start_ns: Int64) -> bool:
    return row.kind in DEVICE_KINDS and bool((row.start_ns + row.dur_ns > capture_start_ns).any())
