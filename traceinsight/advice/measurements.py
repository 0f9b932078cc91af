"""What rules may look at: the measurements of one run, with the few sums that several rules need."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from traceinsight.advice.job import JobFacts
from traceinsight.analyses.host_link import HostLink
from traceinsight.base.statistics import median
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
    typical_step_ns,
)


@dataclass(frozen=True)
class CaptureFacts:
    """What the capture holds and lacks.

    Attributes:
        device_recorded: Ranks whose device (GPU, or CPU of a gloo job) was recorded.
        host_recorded: Whether any CPU operator or annotation was recorded.
        launches_recorded: Whether GPU events can be traced back to their launches.
        step_marks: Whether steps are marked in the trace rather than guessed.
        input_marks: Whether a data-loader or batch-loading annotation was recorded.
        captured_steps: Number of steps, dropped ones included.
        incomplete_collectives: Whether a collective of the analysed steps lacks a member's part.

    """

    device_recorded: frozenset[int]
    host_recorded: bool
    launches_recorded: bool
    step_marks: bool
    input_marks: bool
    captured_steps: int
    incomplete_collectives: bool


@dataclass(frozen=True)
class Measurements:
    """The measurements of one run; ``device_word`` is how to call what computes ("GPU", "rank").

    ``collectives`` are those of the analysed steps. ``host_link`` is of CPU ranks, None where nothing tells
    its rate.
    """

    run: Run
    partition: Sequence[Partition]
    communication: Sequence[CommunicationRow]
    stragglers: Sequence[Straggler]
    stragglers_not_judged: str | None
    capture: CaptureFacts
    device_word: str
    shards: Sequence[ShardRow] = ()
    load_balance: Sequence[LoadBalance] = ()
    collectives: Sequence[Collective] = ()
    job: JobFacts = field(default_factory=JobFacts)
    host_link: HostLink | None = None
    kernels: Sequence[KernelFamilyRow] = ()

    @cached_property
    def step_ns(self) -> float:
        """Typical step window: the median over ranks and steady steps; 0 when there is none."""
        return typical_step_ns(self.partition) or 0.0

    def per_rank(self, part: Callable[[Partition], int]) -> dict[int, float]:
        """Median over steps of one part of the partition, by rank, in ns."""
        found: dict[int, list[int]] = defaultdict(list)
        for row in self.partition:
            found[row.rank].append(part(row))
        return {rank: median(values) for rank, values in sorted(found.items())}

    def share(self, duration_ns: float) -> float:
        """A duration as share of the typical step window."""
        return duration_ns / self.step_ns if self.step_ns else 0.0


def range_over_ranks(per_rank: dict[int, float]) -> NanosecondRange:
    """The least, median and largest rank."""
    values = sorted(per_rank.values())
    return NanosecondRange(low=round(values[0]), expected=round(median(values)), high=round(values[-1]))
