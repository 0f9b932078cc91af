"""What an edit is."""

from __future__ import annotations

from typing import Protocol

from traceinsight.replay.facts import Facts
from traceinsight.replay.graph import Graph


class NotApplicableError(Exception):
    """The edit means nothing for this run; the message says why."""


class Edit(Protocol):
    """A change of the job. Implementations document their model, assumptions and uncertainty.

    ``uncertainty`` is how far the change of step time may be off, relative to itself (0.2 = 20 %).
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
