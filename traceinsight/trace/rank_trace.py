"""One rank: what was recorded, and what follows from it alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from traceinsight.base.labels import Phase
from traceinsight.trace.annotations import AnnotationIndex
from traceinsight.trace.recording import Int64, Recording
from traceinsight.trace.steps import Step, Steps


@dataclass(frozen=True, slots=True)
class RankCollective:
    """One rank's part in one collective, on the rank's own clock. ``lane`` is the thread that launched it.

    ``in_bytes`` is what the rank puts in, ``out_bytes`` what it gets; None where not recorded. ``in_split``
    and ``out_split`` are how they divide over the group's members, in rows of the tensor. ``group`` is
    None when the arguments that name it are missing. ``step`` is a step number; one below the first or above
    the last captured step means that the launch lies outside the capture.
    """

    event: int
    lane: int
    operation: str
    label: str | None
    phase: Phase
    step: int
    start_ns: int
    end_ns: int
    launch_ns: int
    group: tuple[int, ...] | None
    group_size: int | None
    group_name: str | None
    sequence: int | None
    in_bytes: int | None
    out_bytes: int | None
    in_split: tuple[int, ...] | None
    out_split: tuple[int, ...] | None
    dtype: str | None


USABLE_LOST_SHARE = 0.5
"""A rank that lost more than half of its work in every step says nothing about its GPU."""

CLEAN_LOST_SHARE = 0.05
"""A step that lost no more than this is clean; profilers drop single events all the time."""


@dataclass(frozen=True, slots=True)
class RankTrace:
    """A recording with its launches, steps and collectives.

    ``launch`` has shape (n_events,): the runtime call behind each GPU event, ``MISSING`` elsewhere.
    ``lost_shares`` gives the share of lost GPU work per step, in the order of ``steps.steps``. A rank
    without a clean step is ``set_aside`` when others have some: its device then counts as not recorded.
    ``guessed`` are GPU events that the profiler lost and a replay gave back: none in a trace as it was read.
    """

    rank: int
    recording: Recording
    launch: Int64
    drives_accelerator: bool
    lost_shares: tuple[float, ...]
    set_aside: bool
    annotations: AnnotationIndex
    steps: Steps
    collectives: tuple[RankCollective, ...]
    guessed: Int64 = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    @property
    def has_gpu(self) -> bool:
        """Whether the rank recorded any GPU work; otherwise its CPU threads are the device."""
        return self.recording.has_gpu_work

    @property
    def device_recorded(self) -> bool:
        """Whether what computes was recorded: most of the GPU's work in some step, or a job's CPU."""
        if not self.has_gpu:
            return not self.drives_accelerator
        if self.set_aside:
            return False
        return min(self.lost_shares, default=0.0) <= USABLE_LOST_SHARE

    def step(self, number: int) -> Step | None:
        """The step of that number, or None if this rank did not capture it."""
        return self.steps.by_number.get(number)
