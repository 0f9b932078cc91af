"""One number per step and run: what the noise is judged over.

Ranks of one step wait for each other, so they are no independent samples; steps are. Every step therefore
gives one value, made from the ranks that both runs captured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from traceinsight.base.statistics import median
from traceinsight.diagnosis import CAUSES, CommunicationRow, Diagnosis, Partition

PARTS: dict[str, Callable[[Partition], float]] = {
    "compute": lambda row: row.compute_ns,
    "transfer": lambda row: row.exposed_comm_transfer_ns,
    "wait": lambda row: row.exposed_comm_wait_ns,
    "unsplit": lambda row: row.exposed_comm_unsplit_ns,
    "copy": lambda row: row.exposed_copy_ns,
    "idle": lambda row: row.idle_ns,
}


def idle_cause(cause: str) -> Callable[[Partition], float]:
    """Idle time of one cause; a cause without time has no key, which is a measured zero."""
    return lambda row: row.idle_by_cause_ns.get(cause, 0)


MIN_CLOSED_STEPS = 3
"""Steps that must be left for the last captured one to be left out: no next step closes its window, and the
profiler is stopped in it."""


@dataclass(frozen=True, slots=True)
class Side:
    """One run: its diagnosis, and the ranks and steps that count."""

    diagnosis: Diagnosis
    ranks: frozenset[int]
    steps: tuple[int, ...]

    def steps_ns(self, *, on_host: bool) -> list[float]:
        """Median over ranks of the step, per steady step: the device window, or the host's step.

        Steps of no length are left out: their durations were lost, and a step that took no time would pass
        every limit.
        """
        if not on_host:
            return [one for one in self._per_step(lambda row: row.window_ns, median) if one > 0]
        steady = set(self.steps)
        by_step: dict[int, list[float]] = defaultdict(list)
        for row in self.diagnosis.step_times:
            if row.cpu_ns is not None and row.step in steady and row.rank in self.ranks:
                by_step[row.step].append(row.cpu_ns)
        return [one for step in sorted(by_step) if (one := median(by_step[step])) > 0]

    def part_ns(self, part: Callable[[Partition], float]) -> list[float]:
        """Mean over ranks of a part of the window, per steady step; means of parts sum to the mean window."""
        return self._per_step(part, lambda values: sum(values) / len(values))

    def exposed_ns(self, kind: CommunicationRow) -> list[float] | None:
        """Exposed time of a kind of collective per step; None where the document does not give it."""
        given, steps = kind.exposed_by_step_ns, self.diagnosis.run.steps
        if given is None or len(given) != len(steps):
            return None
        counted = set(self.steps)
        return [float(one) for step, one in zip(steps, given, strict=True) if step in counted]

    def idle_causes(self) -> list[str]:
        """The causes of idle time that occur, in their fixed order."""
        found = {
            cause for row in self.diagnosis.partition for cause, ns in row.idle_by_cause_ns.items() if ns
        }
        return [cause for cause in CAUSES if cause in found]

    def _per_step(
        self, value: Callable[[Partition], float], over_ranks: Callable[[Sequence[float]], float]
    ) -> list[float]:
        by_step: dict[int, list[float]] = defaultdict(list)
        counted = set(self.steps)
        for row in self.diagnosis.partition:
            if row.rank in self.ranks and row.step in counted:
                by_step[row.step].append(value(row))
        return [over_ranks(by_step[step]) for step in sorted(by_step)]


def sides(before: Diagnosis, after: Diagnosis) -> tuple[Side, Side]:
    """Both runs over the ranks they share; over all of each where the jobs differ in size or share none."""
    own = [frozenset(one.run.ranks) for one in (before, after)]
    shared = own[0] & own[1]
    if before.run.world_size == after.run.world_size and shared:
        own = [shared, shared]
    return Side(before, own[0], _closed(before)), Side(after, own[1], _closed(after))


def _closed(diagnosis: Diagnosis) -> tuple[int, ...]:
    """The steady steps, without the last captured one where enough others are left."""
    steps = sorted(diagnosis.run.steps)
    last = max([*steps, *(drop.step for drop in diagnosis.run.dropped_steps)], default=None)
    if steps and steps[-1] == last and len(steps) > MIN_CLOSED_STEPS:
        steps.pop()
    return tuple(steps)
