"""What a replay predicts for changes of the job."""

from __future__ import annotations

from traceinsight.diagnosis.advice import Interval
from traceinsight.diagnosis.measurements import NanosecondRange
from traceinsight.diagnosis.run import Run, Struct


class Replay(Struct, frozen=True):
    """How well the dependency graph explains the measured steps, and whether anything is predicted.

    ``residual_share``: distance between the step replayed from causes alone and the measured one, as share
    of the step; median over steps, and that of the worst step. None where no graph could be built.
    """

    residual_share: float | None  # replayed against measured step, median over steps; null when no graph
    worst_step: float | None  # the same for the worst step
    predicted: bool  # whether gains were replayed
    reason: str | None  # why nothing was predicted


class PredictedEdit(Struct, frozen=True):
    """One edit, applied on top of all the edits before it.

    ``step_ns`` is the predicted step time after it; ``speedup`` is the step time before it over that after
    it, ``cumulative_speedup`` today's step time over that. Below 1 the edit slows the step down.
    ``per_example_factor`` is how many times the examples per step grow (a larger batch, more nodes), else 1.
    ``detail`` says what the edit did on this run and what it had to assume; None where that is plain.
    """

    edit: str
    step_ns: NanosecondRange | None
    speedup: Interval | None
    cumulative_speedup: Interval | None
    per_example_factor: float
    not_applicable: str | None
    detail: str | None = None


class WhatIf(Struct, frozen=True):
    """Edits applied one after another to one run; ``step_ns`` is today's measured step window."""

    run: Run
    replay: Replay
    step_ns: int | None
    edits: list[PredictedEdit]
    schema_version: int = 1
