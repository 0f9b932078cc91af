"""How a report is to look."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What the reader's screen can show and how much they want to see.

    Attributes:
        width: Columns of the screen; only the terminal report has lines to fit.
        color: Whether escape sequences for colour may be written.
        all_ranks: Whether every rank has its line, however many there are.

    """

    width: int = 80
    color: bool = False
    all_ranks: bool = False
