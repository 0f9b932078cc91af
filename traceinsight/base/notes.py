"""A note about the quality of the data: what was missing, odd, repaired or left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["info", "warning", "error"]


@dataclass(frozen=True, slots=True)
class DataNote:
    """One thing the reader of a result must know about the data it rests on.

    Attributes:
        severity: ``info`` changes no number; ``warning`` may change one; ``error`` means data was lost.
        code: Stable kebab-case identifier, e.g. ``truncated-file``.
        message: One sentence for a person: what, and what it means for the result.
        rank: The rank it concerns, or None when it concerns the run or a file without a rank.
        file: The file it concerns, as the user named it, or None.
        count: How many events (or files) it concerns, or None where counting makes no sense.

    """

    severity: Severity
    code: str
    message: str
    rank: int | None = None
    file: str | None = None
    count: int | None = None
