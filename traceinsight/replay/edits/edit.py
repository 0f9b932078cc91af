"""What an edit is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from traceinsight.replay.facts import Facts
from traceinsight.replay.graph import Graph


class NotApplicableError(Exception):
    """The edit means nothing for this run; the message says why."""


class Edit(Protocol):
    """A change of the job. Implementations document their model, assumptions and uncertainty.

    ``uncertainty`` is how far the change of step time may be off, relative to itself (0.2: a step made k
    times shorter may become k^0.8 to k^1.2 times shorter; for small changes, 20 % more or less).
    """

    @property
    def text(self) -> str:
        """How a user writes it: ``qcomms=fp8``."""

    @property
    def uncertainty(self) -> float:
        """Relative uncertainty of the change it predicts."""

    def apply(self, graph: Graph, facts: Facts) -> Graph:
        """The edited graph.

        Raises:
            NotApplicableError: If there is nothing to edit.

        """


@dataclass(frozen=True, slots=True)
class Explanation:
    """What is to be said of an edit on one run.

    ``detail`` is one line, or None. ``uncertainty`` replaces the edit's own where this run gives it less to
    go by. ``examples_factor`` is how many times the examples per step grow. ``slower_factor`` is how many
    times as long the step may be, besides, if an assumption in ``detail`` does not hold.
    """

    detail: str | None = None
    uncertainty: float | None = None
    examples_factor: float = 1.0
    slower_factor: float = 1.0


@runtime_checkable
class Explained(Protocol):
    """An edit that has more to say than its name; implementing it is optional."""

    def explain(self, facts: Facts) -> Explanation:
        """What it does on this run; ``facts`` are of the graph it is applied to."""


def explanation_of(edit: Edit, facts: Facts) -> Explanation:
    """What an edit has to say of this run."""
    return edit.explain(facts) if isinstance(edit, Explained) else Explanation()
