"""What a timeline consists of: rows of disjoint pieces of time, as columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traceinsight.trace.recording import Int8, Int32, Int64

CATEGORIES = ("host", "compute", "transfer", "wait", "unsplit", "copy", "launch", "delay", "before")
"""What a piece is. The last three are on the critical path only: from a launch call to the device; measured
time that nothing recorded accounts for; and what was under way when the analysed steps began."""


@dataclass(frozen=True, slots=True)
class Row:
    """One row of one rank: ``host``, ``compute``, ``communication`` or ``copy``.

    Columns of shape (n_pieces,), disjoint and in order of time. Times are ns after the timeline's origin.
    ``category`` is a position in ``CATEGORIES``, ``name`` one in ``Timeline.names``.
    """

    rank: int
    title: str
    start_ns: Int64
    end_ns: Int64
    category: Int8
    name: Int32


@dataclass(frozen=True, slots=True)
class PathRow(Row):
    """The critical path over all ranks; its ``rank`` is -1, that of each piece is in ``ranks``."""

    ranks: Int32


@dataclass(frozen=True, slots=True)
class Timeline:
    """A run on its common clock.

    Attributes:
        origin_ns: Zero of all other times, on the common clock.
        end_ns: End of the last piece.
        names: What pieces are called; texts out of the traces, to be shown as text.
        rows: By rank, then host, compute, communication, copy; a row without a piece is left out.
        steps: (rank, step number, start, end) of every analysed step's window.
        critical_path: None where the replay cannot explain the steps.
        no_path_because: Why there is no critical path, or None.

    """

    origin_ns: int
    end_ns: int
    names: tuple[str, ...]
    rows: tuple[Row, ...]
    steps: tuple[tuple[int, int, int, int], ...]
    critical_path: PathRow | None
    no_path_because: str | None

    def step_ns(self, number: int) -> tuple[int, int] | None:
        """From the first rank's start of a step to the last rank's end; None for a step not analysed."""
        windows = [(start, end) for _, step, start, end in self.steps if step == number]
        if not windows:
            return None
        return min(start for start, _ in windows), max(end for _, end in windows)


def disjoint(start_ns: Int64, end_ns: Int64) -> tuple[Int64, Int64, Int64]:
    """Starts, ends and positions of what is visible when the piece that began first hides the others.

    Pieces must be in order of start; those hidden altogether, and those without length, are left out.
    """
    if not len(start_ns):
        return start_ns, end_ns, np.empty(0, dtype=np.int64)
    reached = np.concatenate(([start_ns[0]], np.maximum.accumulate(end_ns)[:-1]))
    visible = np.maximum(start_ns, reached)
    keep = np.flatnonzero(end_ns > visible)
    return visible[keep], end_ns[keep], keep
