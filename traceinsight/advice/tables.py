"""What rules say about embedding tables: their names in a sentence, and how to spread their load."""

from __future__ import annotations

from collections.abc import Sequence

_MAX_NAME = 80


def listed(tables: Sequence[str]) -> str:
    """Names for a sentence, each cut to what a line bears."""
    *first, last = [table[:_MAX_NAME] for table in tables] or [""]
    return f"{', '.join(first)} and {last}" if first else last


def spread(tables: Sequence[str]) -> str:
    """How to spread the load of these tables evenly over the ranks."""
    return (
        f"Give every rank the same load: split {listed(tables) or 'the largest tables'} into as many hash "
        "partitions as there are ranks, or a multiple (partition = hash(id) % P, one owner each), or move "
        "tables to lighter ranks (planner with measured costs). Where a few ids take most, they stay in one "
        "partition: deduplicate ids before the exchange, or keep such a table data-parallel."
    )
