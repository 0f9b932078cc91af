"""What was measured. Every number's formula and denominator stands in docs/metrics.md."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from traceinsight.base.statistics import median
from traceinsight.diagnosis.run import Struct

CAUSES = (
    "input",
    "host_sync",
    "host",
    "allocator",
    "launch_latency",
    "dependency",
    "unattributed",
)
"""Why a device was idle: data input, host synchronisation, host operator/launch overhead, memory allocator,
launch latency, dependency on other work, not known."""


class StepTime(Struct, frozen=True):
    """Length of one step on one rank: between CPU step marks, and of its device window."""

    rank: int
    step: int
    cpu_ns: int | None
    device_ns: int | None


class Partition(Struct, frozen=True):
    """Where the window of one step on one rank went. The six parts sum to ``window_ns`` exactly.

    ``exposed_comm_unsplit_ns`` is communication whose peers were not captured or not matched, so that
    waiting cannot be told from transfer. ``idle_by_cause_ns`` sums to ``idle_ns``; keys are ``CAUSES``.
    """

    rank: int
    step: int
    window_ns: int
    compute_ns: int
    exposed_comm_transfer_ns: int
    exposed_comm_wait_ns: int
    exposed_comm_unsplit_ns: int
    exposed_copy_ns: int
    idle_ns: int
    idle_by_cause_ns: dict[str, int]

    @property
    def exposed_comm_ns(self) -> int:
        """Communication with nothing computing: transfer, waiting, and what cannot be split."""
        return self.exposed_comm_transfer_ns + self.exposed_comm_wait_ns + self.exposed_comm_unsplit_ns


def typical_step_ns(partition: Sequence[Partition]) -> float | None:
    """Median step window over ranks and steps, what shares and gains are of; None where there is no step."""
    return median([row.window_ns for row in partition]) if partition else None


class PhaseRow(Struct, frozen=True):
    """One phase of one step on one rank: device work launched by it, and the host time it took."""

    rank: int
    step: int
    phase: str  # input, sparse_data_dist, forward, backward, optimizer, replica_sync, other
    host_ns: int  # time the step's main thread spent in the phase
    compute_ns: int
    comm_ns: int
    exposed_comm_ns: int
    copy_ns: int
    exposed_transfer_ns: int | None = None  # of it, while a collective transfers; None in older documents


class LargestCollective(Struct, frozen=True):
    """The collective with the largest time in forward; ``share`` of the forward span."""

    name: str
    share: float


class ForwardShare(Struct, frozen=True):
    """Communication launched by forward, against the device span of forward (``span_ns``)."""

    rank: int
    step: int
    span_ns: int
    comm_ns: int
    exposed_comm_ns: int
    exposed_transfer_ns: int
    exposed_wait_ns: int
    exposed_unsplit_ns: int
    largest_collective: LargestCollective | None
    source: str  # how forward was found: "## forward ##", "DistributedDataParallel.forward", ...


class Collective(Struct, frozen=True):
    """One collective, matched across ranks.

    ``transfer_ns`` = end - last arrival; None when a member's kernel is missing. ``wait_ns`` per captured
    rank = last arrival - own arrival; a lower bound when ``unmatched_ranks`` is not empty.
    ``bytes`` is the payload one rank sends (largest over ranks), None when not recorded.
    """

    op: str
    group: str
    step: int
    ranks: list[int]
    unmatched_ranks: list[int]
    bytes: int | None
    dtype: str | None
    transfer_ns: int | None
    wait_ns: dict[int, int]
    bus_gbps: float | None
    label: str | None  # the TorchRec or framework annotation that launched it
    phase: str
    algorithm_gbps: float | None
    size_imbalance: float | None  # max/mean of the bytes over ranks, for all-to-all-v
    last_rank: int | None
    synchronising: bool  # whether no member can end before the last one arrives


class CommunicationRow(Struct, frozen=True):
    """All collectives of one kind (operation and label), per step.

    Times are the median over steady steps of the mean over ranks; ``exposed_share`` is ``exposed_ns``
    against the mean step window.
    """

    op: str
    label: str | None
    phase: str
    count_per_step: float
    bytes_per_step: int | None
    dtype: str | None
    busy_ns: int
    exposed_ns: int
    exposed_transfer_ns: int
    exposed_wait_ns: int
    exposed_unsplit_ns: int
    exposed_share: float
    bus_gbps: float | None
    exposed_by_step_ns: list[int] | None = None  # in each of ``run.steps``; None in older documents


class AllToAllMatrix(Struct, frozen=True):
    """What the all-to-alls of one kind send from each rank to each other, per step.

    ``sent_bytes[i][j]``: from ``ranks[i]`` to ``ranks[j]``, mean over steady steps; a rank's own part is on
    the diagonal and crosses no link. None where neither side recorded its split sizes in some exchange.
    """

    label: str | None
    phase: str
    ranks: list[int]
    sent_bytes: list[list[float | None]]


class GroupLink(Struct, frozen=True):
    """The slowest link that a process group's collectives must cross, by its datasheet.

    ``nodes`` is over how many nodes the group spreads. The bandwidths are the highest bus bandwidth that the
    link allows. They are None where nodes or hardware are not known, and ``reason`` says which.
    """

    group: str
    ranks: list[int]
    nodes: int | None
    link: str | None
    all_to_all_gbps: float | None
    ring_gbps: float | None
    reason: str | None


class Clock(Struct, frozen=True):
    """How far a rank's clock runs ahead of the reference, and how well that is known.

    Both are None when no synchronising collective ties the rank to the others.
    """

    rank: int
    offset_ns: int | None
    residual_ns: int | None


class NanosecondRange(Struct, frozen=True):
    """An interval with its best estimate, nanoseconds."""

    low: int
    expected: int
    high: int


class Straggler(Struct, frozen=True):
    """Ranks that arrive late together and make the others wait.

    ``last_share``: share of synchronising collectives in which one of them came last. ``lateness_ns``:
    behind the last of the other ranks, per collective in which they came last. ``ceiling_ns``: step
    time freed if they came with the next rank. ``tables``: those whose lookups make them late, as far as
    the run manifest tells.
    """

    ranks: list[int]
    last_share: float
    lateness_ns: NanosecondRange
    ceiling_ns: int
    cause: str
    confidence: Literal["low", "medium", "high"]
    persistence: Literal["persistent", "transient", "unknown"]
    steps_late: int
    steps_judged: int
    behind_median_ns: int  # behind the median rank
    detail: str  # one or two sentences for a person
    tables: list[str] = msgspec.field(default_factory=list)


class KernelFamilyRow(Struct, frozen=True):
    """Device time of one kernel family: sum of durations per step, mean over ranks.

    ``share`` is against the summed device time of all families (streams overlap, so not of the window).
    """

    family: str
    busy_ns: int
    share: float
    count_per_step: float
    top_kernels: list[str]
