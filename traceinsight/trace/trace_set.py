"""``TraceSet``: all ranks of one run, on one clock, with their collectives matched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from traceinsight.base.collective_names import SYNCHRONISING
from traceinsight.base.labels import Phase
from traceinsight.base.notes import DataNote
from traceinsight.trace.clocks import ClockOffset
from traceinsight.trace.rank_trace import RankCollective, RankTrace


@dataclass(frozen=True, slots=True)
class MatchedCollective:
    """One collective as all its members saw it; times are on the common clock.

    ``members``, ``starts_ns`` and ``ends_ns`` follow ``ranks``. ``absent_ranks`` are members of the group
    whose kernel is missing: not captured, or lost. ``membership_known`` is False for a rank alone of which
    neither group nor world size was recorded: who else should be there is then not known.
    """

    operation: str
    label: str | None
    phase: Phase
    step: int
    group: tuple[int, ...] | None
    ranks: tuple[int, ...]
    members: tuple[RankCollective, ...]
    starts_ns: tuple[int, ...]
    ends_ns: tuple[int, ...]
    absent_ranks: tuple[int, ...]
    membership_known: bool

    @property
    def synchronising(self) -> bool:
        """Whether no member can end before the last one has arrived."""
        return self.operation in SYNCHRONISING

    @property
    def complete(self) -> bool:
        """Whether every member's kernel is there, so that waiting can be told from transfer."""
        return self.synchronising and self.membership_known and not self.absent_ranks

    @property
    def last_arrival_ns(self) -> int:
        """When the last captured member arrived."""
        return max(self.starts_ns)


@dataclass(frozen=True, slots=True)
class DroppedStepNote:
    """A step left out of every number, and why."""

    step: int
    reason: str


@dataclass(frozen=True, slots=True)
class TraceSet:
    """One run. ``ranks`` are sorted; ``steps`` are the steady-state step numbers all numbers rest on."""

    ranks: tuple[RankTrace, ...]
    world_size: int | None
    missing_ranks: tuple[int, ...]
    backend: str | None
    device: str | None
    steps: tuple[int, ...]
    dropped_steps: tuple[DroppedStepNote, ...]
    step_source: str
    clocks: Mapping[int, ClockOffset]
    collectives: tuple[MatchedCollective, ...]
    manifest: Mapping[str, object] | None
    notes: tuple[DataNote, ...]

    def offset_ns(self, rank: int) -> int:
        """What to subtract from a rank's times to get the common clock (0 where it is not known)."""
        return self.clocks[rank].offset_ns or 0

    @property
    def has_gpu(self) -> bool:
        """Whether any rank recorded GPU work."""
        return any(rank.has_gpu for rank in self.ranks)
