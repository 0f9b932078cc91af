"""What a replay predicts for changes of the job."""

from __future__ import annotations

from msgspec import field

from traceinsight.diagnosis.advice import Interval
from traceinsight.diagnosis.measurements import NanosecondRange
from traceinsight.diagnosis.run import DataQuality, Generator, Run, Struct


class Replay(Struct, frozen=True):
    """How well the dependency graph explains the measured steps, and whether anything is predicted.

    ``residual_share``: distance between the step replayed from causes alone and the measured one, as share
    of the step; median over steps, and that of the worst step. None where no graph could be built.
    ``step_ns`` is today's step as the replay measures it, from the end of one step's work to that of the
    next one's: what predicted steps are to be held against. None where nothing was predicted.
    ``lost_share``: share of the replayed device events that the profiler had lost; they are replayed as other
    steps show them. None where nothing was predicted, and in older documents.
    """

    residual_share: float | None  # replayed against measured step, median over steps; null when no graph
    worst_step: float | None  # the same for the worst step
    predicted: bool  # whether gains were replayed
    reason: str | None  # why nothing was predicted
    step_ns: int | None = None  # today's step, from step end to step end; null in older documents
    lost_share: float | None = None  # device events that were lost and are replayed as in the other steps


class PredictedEdit(Struct, frozen=True):
    """One edit, applied on top of all the edits before it.

    ``step_ns`` is the predicted step time after it; ``speedup`` is the step time before it over that after
    it, ``cumulative_speedup`` today's step time over that. Below 1 the edit slows the step down.
    ``per_example_factor`` is how many times the examples per step grow (a larger batch, more nodes), else 1.
    ``detail`` says what the edit did on this run and what it had to assume; None where that is plain.
    """

    edit: str
    step_ns: NanosecondRange | None  # predicted step time after it; null where it does not apply
    speedup: Interval | None  # against the step before it; null where it does not apply
    cumulative_speedup: Interval | None  # against today's step; null where it does not apply
    per_example_factor: float  # how many times the examples per step grow
    not_applicable: str | None  # why it does not apply to this run; null where it does
    detail: str | None = None  # what it did and had to assume; null where that is plain


class RankStepParts(Struct, frozen=True):
    """Where the replayed step of one rank goes, in ns; the parts sum to the step."""

    rank: int
    compute_ns: int
    transfer_ns: int  # exposed communication after the last member's arrival
    wait_ns: int  # exposed communication before it
    copy_ns: int
    idle_ns: int
    replica_sync_ns: int  # its share of the syncs of replicas, which not every step has


class WhatIf(Struct, frozen=True):
    """Edits applied one after another to one run; ``step_ns`` is today's step, from step end to step end.

    ``parts_before`` and ``parts_after`` are per rank, replayed without and with all edits that apply; empty
    where nothing is predicted, ranks have no device, or no two steps in a row were captured.
    """

    run: Run
    replay: Replay  # how well the replay explains the measured steps
    step_ns: int | None  # today's step; null where nothing is predicted
    edits: list[PredictedEdit]  # in the order given, each on top of those before it
    schema_version: int = 1
    parts_before: list[RankStepParts] = field(default_factory=list)  # today's step by rank
    parts_after: list[RankStepParts] = field(default_factory=list)  # with all edits that apply
    generator: Generator | None = None  # null in documents of versions that did not name it
    data_quality: list[DataQuality] = field(default_factory=list)

    def speedups_per_example(self) -> list[tuple[float, float] | None]:
        """(against the edits before it, against today) of each edit; None where it does not apply.

        Examples per step may grow with any edit, so the second carries the growth of all edits so far.
        """
        found: list[tuple[float, float] | None] = []
        grown = 1.0
        for edit in self.edits:
            if edit.speedup is None or edit.cumulative_speedup is None:
                found.append(None)
                continue
            grown *= edit.per_example_factor
            alone = edit.speedup.expected * edit.per_example_factor
            found.append((alone, edit.cumulative_speedup.expected * grown))
        return found
