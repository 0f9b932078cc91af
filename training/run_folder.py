"""The trace folder of a run: what an earlier run left in it, and what this one wrote."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import torch.distributed as dist

from training.state import TrainState, gather

_OF_A_RUN = ("run.json", "rank*.pt.trace.json.gz", ".rank*.counts.json")
_TRIES = 10_000


def begin(state: TrainState, folder: Path) -> None:
    """Make ``folder`` this run's own, and say so if it will see no trace. Collective.

    An analysis takes what lies in a folder for one run: a rank that only an earlier, larger run had, or its
    run.json beside these traces, would be in the results. So they move to a hidden folder in it, which an
    analysis of this folder, or of one above it, does not enter.
    """
    # The first rank and then those of other nodes, each for the disk of its node: where all share one,
    # there is nothing left to move.
    first = dist.get_rank() == 0
    for turn in (first, not first and os.environ.get("LOCAL_RANK") == "0"):
        if turn:
            _set_aside_or_say(folder)
        dist.barrier()
    loop, profiled = state.config.loop, _first_profiled(state)
    if first and profiled >= loop.steps:
        _say(
            f"there will be no traces: the run ends after {loop.steps} steps, and step {profiled} is the "
            "first to be profiled; lower loop.wait or loop.warmup, or raise loop.steps"
        )


def set_earlier_aside(folder: Path) -> Path | None:
    """Move the record of an earlier run to a new hidden folder in it; return that, None without any.

    Raises OSError.
    """
    found = sorted(path for pattern in _OF_A_RUN for path in folder.glob(pattern))
    if not found:
        return None
    names = (folder / f".earlier-{n}" for n in range(1, _TRIES))
    aside = next(path for path in names if not path.exists())
    aside.mkdir()
    for path in found:
        path.rename(aside / path.name)
    return aside


def what_is_there(state: TrainState, folder: Path) -> str:
    """Say which traces there are at the end of a run. Collective."""
    ranks = gather(bool(_traces(folder, str(dist.get_rank()))))
    if all(ranks):
        return f"traces in {folder}"
    if any(ranks):
        return f"traces of {sum(ranks)} of {len(ranks)} ranks in {folder} (see the notes above)"
    if state.step <= _first_profiled(state):
        return f"no traces: step {_first_profiled(state)} is the first to be profiled"
    return "no traces (see the notes above)"


def what_is_left(folder: Path) -> str:
    """Say whether there are traces, as far as this rank can see; for a run that failed."""
    return f"Traces written so far are in {folder}" if _traces(folder, "*") else "No trace was written yet"


def _first_profiled(state: TrainState) -> int:
    return state.first_step + state.config.loop.wait + state.config.loop.warmup


def _traces(folder: Path, rank: str) -> list[Path]:
    return list(folder.glob(f"rank{rank}.*trace.json.gz"))


def _set_aside_or_say(folder: Path) -> None:
    try:
        aside = set_earlier_aside(folder)
    except OSError as error:
        _say(f"could not move an earlier run's files out of {folder} ({error}): they mix with this run's")
    else:
        if aside is not None:
            _say(f"what an earlier run left in {folder} is now in {aside}")


def _say(text: str) -> None:
    print(f"training: {text}", file=sys.stderr, flush=True)
