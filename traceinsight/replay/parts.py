"""What the builders of one rank exchange with the rest of the graph."""

from __future__ import annotations

from dataclasses import dataclass

from traceinsight.trace.recording import Int64


@dataclass(frozen=True, slots=True)
class Part:
    """One rank's part in one collective; ``launch_ns`` on its own clock, the rest on the common clock."""

    collective: int
    event: int
    launch_ns: int
    arrival_ns: int
    met_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class Added:
    """Nodes of the rank's parts, in their order."""

    arrivals: Int64
    transfers: Int64
