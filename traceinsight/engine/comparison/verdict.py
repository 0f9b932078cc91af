"""The first sentence of a comparison."""

from __future__ import annotations

from collections.abc import Sequence

from traceinsight.base.units import format_ns, format_share
from traceinsight.diagnosis.comparison import Change, PartChange
from traceinsight.engine.comparison.changes import MIN_CHANGE_SHARE

MOST_SHARE = 0.5
"""A part that makes up at least this share of the change is called most of it."""

LOUD_SHARE = 0.1
"""Noise from here on hides what people look for in a step; a reader must not take it for sameness."""

PART_WORDS = {
    "compute": "compute",
    "transfer": "exposed transfer",
    "wait": "waiting for late peers",
    "unsplit": "exposed communication that cannot be split",
    "copy": "exposed copies",
    "idle": "idle time",
}


def verdict_of(step: Change, parts: Sequence[PartChange], *, equal_batch: bool) -> str:
    """How much shorter or longer a step is and where, or that it cannot be told from noise, or not judged."""
    if not step.judged:
        times = (
            ""
            if step.change_ns is None
            else f" from {format_ns(step.before_ns)} to {format_ns(step.after_ns)}"
        )
        return f"The change{times} cannot be judged: {step.reason}."
    if not step.significant:
        noise = noise_share(step)
        loud = "; smaller changes than that cannot be told from these steps" if noise >= LOUD_SHARE else ""
        return f"No change beyond the noise of {format_share(noise)}{_times(step)}{loud}."
    low, high = sorted(abs(bound) for bound in (step.low_share, step.high_share) if bound is not None)
    interval = f"{format_share(low)} to {format_share(high)}"
    word = "longer" if (step.change_ns or 0) > 0 else "shorter"
    scaled = " at equal batch" if equal_batch else ""
    main = "" if equal_batch else _main_part(step, parts)
    return (
        f"A step is {format_share(abs(step.share or 0.0))} {word}{scaled} ({interval}){_times(step)}{main}."
    )


def noise_share(step: Change) -> float:
    """The largest change, against the step before, that the steps would not tell from none."""
    bounds = [abs(bound) for bound in (step.low_share, step.high_share) if bound is not None]
    return max([MIN_CHANGE_SHARE, *bounds])


def _times(step: Change) -> str:
    if step.before_ns is None or step.after_ns is None:
        return ""
    return f": {format_ns(step.before_ns)} before, {format_ns(step.after_ns)} after"


def _main_part(step: Change, parts: Sequence[PartChange]) -> str:
    """The part that changed most in the direction of the step."""
    total = step.change_ns or 0
    same = [
        part for part in parts if part.change.significant and (part.change.change_ns or 0) * total > 0
    ]  # fmt: skip
    if not same:
        return ""
    largest = max(same, key=lambda part: abs(part.change.change_ns or 0))
    size = abs(largest.change.change_ns or 0)
    how_much = "most of it" if size >= MOST_SHARE * abs(total) else "the largest part of it"
    more = "more" if total > 0 else "less"
    return f"; {how_much} is {more} {PART_WORDS[largest.part]} ({format_ns(size)})"
