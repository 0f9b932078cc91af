"""Normalized-entropy curves of runs, read from their ``run.json``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class CurveError(ValueError):
    """A curve that cannot be read or compared; the text names the file and what is wrong."""


@dataclass(frozen=True)
class Run:
    """One run: its points are (examples seen at the point's end, examples in it, normalized entropy)."""

    path: Path
    seed: int | None
    points: tuple[tuple[int, int, float | None], ...]

    @property
    def examples(self) -> int:
        """Examples that all ranks together trained on."""
        return self.points[-1][0]


def read_runs(folder: Path) -> list[Run]:
    """Return the runs below ``folder``, one per ``run.json``; raises CurveError."""
    files = [folder] if folder.is_file() else sorted(folder.glob("**/run.json"))
    if not files:
        raise CurveError(f"{folder} holds no run.json; give the folder of the runs, one per seed")
    return [_read(path) for path in files]


def _read(path: Path) -> Run:
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        points = _windows(manifest["windows"]) if manifest.get("windows") else _steps(manifest)
        config = manifest.get("config") or {}
        seed = (config.get("data") or {}).get("seed")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CurveError(f"{path} has no normalized-entropy curve: {type(error).__name__} {error}") from None
    if not points:
        raise CurveError(f"{path} has no normalized-entropy curve: it lists no steps")
    return Run(path, seed, tuple(points))


def _windows(windows: list[dict[str, Any]]) -> list[tuple[int, int, float | None]]:
    seen, points = 0, []
    for window in windows:
        seen += int(window["examples"])
        points.append((seen, int(window["examples"]), window["normalized_entropy"]))
    return points


def _steps(manifest: dict[str, Any]) -> list[tuple[int, int, float | None]]:
    """Return one point per step, for a job that records no windows: ``recording.step(...)`` is enough."""
    size = int(manifest["batch_per_rank"]) * int(manifest["world_size"])
    steps = manifest["steps"]
    return [((step["step"] + 1) * size, size, step["normalized_entropy"]) for step in steps]


def window_of(runs: list[Run], share: float) -> tuple[int, int]:
    """Return (first, last) examples of the final ``share`` of what all runs have trained on.

    Counted in examples and not in steps, so that runs with other batch sizes can be compared.
    """
    end = min(run.examples for run in runs)
    return round(end * (1 - share)), end


def final_entropy(run: Run, window: tuple[int, int]) -> float:
    """Return the mean over the window, weighted by examples; raises CurveError where it has a gap."""
    inside = [point for point in run.points if window[0] < point[0] <= window[1]]
    if not inside:
        raise CurveError(f"{run.path} has no measurement in examples {window[0]:,} to {window[1]:,}")
    total = sum(count for _, count, _ in inside)
    entropy = 0.0
    for end, count, value in inside:
        if value is None:
            raise CurveError(
                f"{run.path} has no normalized entropy at {end:,} examples: NaN, or one label only"
            )
        entropy += value * count / total
    return entropy
