"""Normalized-entropy curves of runs, read from their ``run.json``."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from pathlib import Path

from training.equivalence_manifest import CurveError, Stepwise, Window, read_fields

Point = tuple[int, int, float | None]
"""(Examples seen at the point's end, examples in it, normalized entropy)."""


@dataclass(frozen=True)
class Run:
    """One run. ``batch`` is the examples of a step over all ranks; None where it is not known.

    ``steps`` is how many it has done and ``planned_steps`` how many its configuration asks for.
    """

    path: Path
    seed: int | None
    points: tuple[Point, ...]
    batch: int | None = None
    steps: int | None = None
    planned_steps: int | None = None

    @property
    def examples(self) -> int:
        """Examples that all ranks together trained on."""
        return self.points[-1][0]


def read_runs(folder: Path) -> list[Run]:
    """Return the runs below ``folder``, one per ``run.json``; raises CurveError."""
    if not folder.exists():
        raise CurveError(f"{folder} does not exist")
    files = [folder] if folder.is_file() else _visible(folder)
    if not files:
        raise CurveError(f"{folder} holds no run.json; give the folder of the runs, one per seed")
    return [_read(path) for path in files]


def _visible(folder: Path) -> list[Path]:
    """Return every ``run.json`` below ``folder``, without the records of earlier runs in hidden folders."""
    found = sorted(folder.glob("**/run.json"))
    return [path for path in found if not any(part[0] == "." for part in path.relative_to(folder).parts)]


def _read(path: Path) -> Run:
    config, curve = read_fields(path)
    seed = config.data.seed if config.data else None
    planned = config.loop.steps if config.loop else None
    if isinstance(curve, Stepwise):
        batch, steps, points = _of_steps(path, curve)
    else:
        batch, steps, points = _of_windows(path, curve)
    return Run(path, seed, points, batch, steps, planned)


def _of_windows(path: Path, windows: list[Window]) -> tuple[int | None, int | None, tuple[Point, ...]]:
    for number, (earlier, later) in enumerate(itertools.pairwise(windows), start=1):
        if earlier.first is None or earlier.steps is None or later.first is None:
            continue
        if later.first != earlier.first + earlier.steps:
            raise CurveError(
                f"{path} has a gap: windows[{number}].first is {later.first}, and the window before ended "
                f"with step {earlier.first + earlier.steps - 1}"
            )
    begin, last = windows[0], windows[-1]
    # A resumed run may have lost its beginning: it has seen those examples all the same.
    before = begin.first * begin.examples // begin.steps if begin.first and begin.steps else 0
    ends = itertools.accumulate((window.examples for window in windows), initial=before)
    points = tuple(
        (end, window.examples, window.normalized_entropy)
        for end, window in zip(itertools.islice(ends, 1, None), windows, strict=True)
    )
    if last.first is None or last.steps is None:
        return None, None, points
    return last.examples // last.steps, last.first + last.steps, points


def _of_steps(path: Path, curve: Stepwise) -> tuple[int, int, tuple[Point, ...]]:
    """Return one point per step, for a job that records no windows: ``recording.step(...)`` is enough."""
    if not curve.steps:
        raise CurveError(f"{path} has no normalized-entropy curve: it lists no steps")
    for number, (before, after) in enumerate(itertools.pairwise(curve.steps), start=1):
        if after.step != before.step + 1:
            raise CurveError(f"{path} has a gap: steps[{number}].step is {after.step} behind {before.step}")
    size = curve.batch_per_rank * curve.world_size
    points = tuple(((step.step + 1) * size, size, step.normalized_entropy) for step in curve.steps)
    return size, curve.steps[-1].step + 1, points


def cut_short(runs: list[Run]) -> list[str]:
    """Return what is wrong with each run that ended before its time, or before the longest of ``runs``.

    A common part is no substitute: what differs later, or what ended a run, would not be seen.
    """
    longest = max(runs, key=lambda run: run.examples)
    found = []
    for run in runs:
        # Batches of other sizes need not add up to the same number: less than one more batch is no matter.
        missing = longest.examples - run.examples
        if run.steps is not None and run.planned_steps is not None and run.steps < run.planned_steps:
            found.append(f"{run.path} ended after {run.steps:,} of its {run.planned_steps:,} steps")
        elif missing >= (run.batch or 1):
            found.append(
                f"{run.path} has seen {run.examples:,} examples, {longest.path} {longest.examples:,}"
            )
    return found


def window_of(runs: list[Run], share: float) -> tuple[int, int]:
    """Return (first, last) examples of the final ``share`` of what all runs have trained on.

    Counted in examples and not in steps, so that runs with other batch sizes can be compared.
    """
    end = min(run.examples for run in runs)
    return round(end * (1 - share)), end


def final_entropy(run: Run, window: tuple[int, int]) -> float:
    """Return the mean over the window, weighted by examples; raises CurveError where it has a gap."""
    first, last = window
    # Of the last point some examples may lie behind the window: less than one batch of the other side.
    inside = [point for point in run.points if point[0] > first and point[0] - point[1] < last]
    if not inside or inside[0][0] - inside[0][1] > first:
        begins = run.points[0][0] - run.points[0][1]
        raise CurveError(
            f"{run.path} has no measurement in examples {first:,} to {last:,}: its curve begins at {begins:,}"
        )
    total = sum(count for _, count, _ in inside)
    entropy = 0.0
    for end, count, value in inside:
        if value is None:
            raise CurveError(
                f"{run.path} has no normalized entropy at {end:,} examples: NaN, or one label only"
            )
        entropy += value * count / total
    return entropy
