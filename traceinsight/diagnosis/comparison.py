"""What changed between two runs, and what of it is more than noise."""

from __future__ import annotations

from typing import Literal

from traceinsight.diagnosis.advice import Finding
from traceinsight.diagnosis.measurements import CommunicationRow, NanosecondRange, Straggler
from traceinsight.diagnosis.run import Generator, Run, Struct

COMPARISON_VERSION = 1

Presence = Literal["appeared", "vanished", "stayed", "not_judged_before", "not_judged_after"]
"""Whether something was found in each run. What one run could not judge has neither appeared nor vanished."""


class Change(Struct, frozen=True):
    """A duration per step in both runs. ``change_ns`` = after - before; positive is longer.

    ``low_ns`` to ``high_ns`` is the interval of the change over steps, ``coverage`` how often such an
    interval holds the true one; ``share``, ``low_share`` and ``high_share`` are the same against the step
    time before. Only what is ``judged`` can be ``significant``: beyond the noise and large enough to matter.
    None is not measured.
    """

    before_ns: int | None
    after_ns: int | None
    change_ns: int | None
    low_ns: int | None
    high_ns: int | None
    coverage: float | None
    share: float | None
    low_share: float | None
    high_share: float | None
    judged: bool
    significant: bool
    reason: str | None  # why it is not judged


class PartChange(Struct, frozen=True):
    """One part of the step window, mean over ranks; shares are of that run's mean step window."""

    part: str  # compute, transfer, wait, unsplit, copy, idle; for idle time a cause
    before_share: float | None
    after_share: float | None
    change: Change


class CommunicationChange(Struct, frozen=True):
    """One kind of collective (operation, label, phase) in both runs; None in the run that has none of it."""

    before: CommunicationRow | None
    after: CommunicationRow | None
    exposed: Change


class StragglerChange(Struct, frozen=True):
    """A group of late ranks; groups that share a rank are the same."""

    presence: Presence
    before: Straggler | None
    after: Straggler | None


class FindingChange(Struct, frozen=True):
    """A finding; two of the same rule that share a rank are the same."""

    presence: Presence
    before: Finding | None
    after: Finding | None


class Throughput(Struct, frozen=True):
    """Examples per second of the whole job: batch per rank x ranks / step time; change against before."""

    before_examples_per_s: float
    after_examples_per_s: float
    change_share: float


class ComparisonNote(Struct, frozen=True):
    """Something that makes the runs less comparable, or that should be known when reading on."""

    code: str
    message: str


class EditHint(Struct, frozen=True):
    """An edit that seems to have been applied between the runs, and what says so."""

    edit: str
    reason: str


class HeldPrediction(Struct, frozen=True):
    """What replaying BEFORE predicted for the applied edits, beside what AFTER measured.

    Rows follow the order of the edits, each on top of the ones before it; only the last, which holds them
    all, has a measurement to be held against. ``error_share`` = expected / measured - 1.
    """

    edit: str
    step_ns: NanosecondRange | None
    measured_ns: int | None
    error_share: float | None
    inside_interval: bool | None
    not_predicted: str | None  # why there is no prediction


class GateResult(Struct, frozen=True):
    """One ``--fail-on``: the growth of a metric against the step time before, and its limit."""

    metric: Literal["regression", "exposed-comm", "idle"]
    limit_share: float
    change_share: float | None
    outcome: Literal["passed", "failed", "not_judged"]
    reason: str


class Comparison(Struct, frozen=True):
    """Two runs side by side.

    ``step_time`` compares whole steps. Where both batch sizes are known and differ, ``equal_batch`` is the
    same with AFTER's step scaled to BEFORE's batch, and the verdict and the gates rest on it.
    """

    generator: Generator
    verdict: str
    before: Run
    after: Run
    before_steps: list[int]  # the steps that are compared
    after_steps: list[int]
    step_time: Change
    equal_batch: Change | None
    throughput: Throughput | None
    partition: list[PartChange]
    idle_by_cause: list[PartChange]
    communication: list[CommunicationChange]
    stragglers: list[StragglerChange]
    findings: list[FindingChange]
    predictions: list[HeldPrediction]
    hints: list[EditHint]
    notes: list[ComparisonNote]
    gates: list[GateResult]
    schema_version: int = COMPARISON_VERSION
