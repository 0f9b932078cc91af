"""How a job scales: runs of the same job at several world sizes, against the smallest of them.

Definitions and denominators stand in docs/metrics.md ("Scaling").
"""

from __future__ import annotations

from typing import Literal

from traceinsight.diagnosis.run import Generator, Struct

PARTS = ("compute", "transfer", "wait", "replica_sync", "unsplit", "copy", "idle")
"""Parts of a step in the order in which they are shown; ``StepParts`` has a field ``<part>_ns`` for each."""


class StepParts(Struct, frozen=True):
    """A time per step cut into parts that sum to it exactly. Parts of a lost time may be negative."""

    compute_ns: int  # something computes
    transfer_ns: int  # exposed communication after the last member's arrival, replica sync left out
    wait_ns: int  # exposed communication before the last member's arrival, replica sync included
    replica_sync_ns: int  # exposed transfer of the replica sync of 2D parallelism
    unsplit_ns: int  # exposed communication that cannot be split into transfer and wait
    copy_ns: int  # exposed copies
    idle_ns: int  # nothing runs

    def total_ns(self) -> int:
        """What the parts sum to."""
        return sum(self.part_ns(part) for part in PARTS)

    def part_ns(self, part: str) -> int:
        """The part of that name out of ``PARTS``."""
        value: int = getattr(self, f"{part}_ns")
        return value


class ScalingPoint(Struct, frozen=True):
    """One run. The smallest run is the base: its ``throughput_ratio`` and ``efficiency`` are 1, it lost 0.

    ``parts`` sums to ``step_ns`` and ``lost`` to ``lost_ns``; both are None where no device activity was
    recorded. A negative ``lost_ns`` means better than ideal.
    """

    run: str  # as the user named it
    world_size: int
    nodes: int | None  # from run.json; None without it
    ranks_read: int  # ranks whose traces were read
    steps: int  # analysed steps
    device: str | None  # GPU name, "CPU", or None when unknown
    simulated: bool
    batch_per_rank: int | None  # examples per step and rank, from run.json; None without it
    step_ns: int  # median over ranks and analysed steps
    ideal_step_ns: int  # step of the base, times batch per rank over that of the base
    examples_per_s: float | None  # of the whole job; None when the batch is not known
    throughput_ratio: float  # throughput over that of the base: the speedup for a given number of examples
    ideal: float  # world size over that of the base
    efficiency: float  # throughput_ratio / ideal = ideal_step_ns / step_ns
    lost_ns: int  # step_ns - ideal_step_ns
    parts: StepParts | None  # where the step goes
    lost: StepParts | None  # each part minus the base's, scaled like ideal_step_ns


class Estimate(Struct, frozen=True):
    """A forecast number; ``low`` and ``high`` are None where too few runs allow no interval."""

    expected: float  # best estimate
    low: float | None  # lower bound
    high: float | None  # upper bound


class ForecastPoint(Struct, frozen=True):
    """The job at a size that was not run, with the batch per rank of the runs."""

    world_size: int
    nodes: int | None  # as many ranks per node as in the largest run
    ideal: float  # world size over that of the base
    step_ns: Estimate  # step time
    throughput_ratio: Estimate  # throughput over that of the base
    efficiency: Estimate  # throughput_ratio / ideal
    examples_per_s: Estimate | None  # of the whole job; None when the batch is not known


class ForecastModel(Struct, frozen=True):
    """Lost time per step = ``growth_ns`` x g(m), m = world size over that of the base, fitted to the runs.

    ``residual_ns``: root mean square of what the fit leaves, per degree of freedom; None with two runs.
    """

    shape: Literal["saturating", "logarithmic", "linear", "quadratic"]  # the last is in intervals only
    formula: str  # g(m)
    growth_ns: int  # lost time where g(m) is 1
    residual_ns: int | None  # what the fit leaves
    fitted_runs: int  # runs besides the base
    interval: float  # nominal coverage of low to high


class LeftOutRun(Struct, frozen=True):
    """A run that was given and has no point, and why."""

    run: str  # as the user named it
    reason: str  # why it has no point


class ScalingNote(Struct, frozen=True):
    """What to know before believing the comparison. ``warning``: a number may be affected."""

    severity: Literal["info", "warning"]  # how grave it is
    code: str  # stable kebab-case identifier
    message: str  # one sentence for a person
    runs: list[str]  # the runs it concerns


class Scaling(Struct, frozen=True):
    """Throughput over world sizes, the time lost against ideal, and what larger sizes would bring.

    ``basis``: ``examples`` when every run's batch is known; else ``steps``: throughput is steps/s times world
    size, as if all runs had the same batch per rank.
    """

    generator: Generator
    verdict: str
    basis: Literal["examples", "steps"]  # what throughput counts
    points: list[ScalingPoint]  # by world size; the first is the base
    forecast: list[ForecastPoint]  # two and four times the largest size
    model: ForecastModel | None  # what the forecast rests on; None without one
    no_forecast: str | None  # why there is none
    left_out: list[LeftOutRun]  # runs without a point
    notes: list[ScalingNote]  # what to know before believing the comparison
    schema_version: int = 1
