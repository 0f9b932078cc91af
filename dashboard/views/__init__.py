"""Pages: thin functions that put charts, tables and prose below each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..context import Context
from . import communication, compare, overview, quality, ranks, scaling, shards, timeline, whatif, work


@dataclass(frozen=True, slots=True)
class View:
    """A page by its name in the URL and in the menu."""

    key: str
    title: str
    draw: Callable[[Context], None]


VIEWS = {
    view.key: view
    for view in (
        View("overview", "Overview", overview.draw),
        View("ranks", "Ranks", ranks.draw),
        View("shards", "Shards", shards.draw),
        View("communication", "Communication", communication.draw),
        View("timeline", "Timeline", timeline.draw),
        View("work", "Kernels", work.draw),
        View("whatif", "What-if", whatif.draw),
        View("compare", "Compare", compare.draw),
        View("scaling", "Scaling", scaling.draw),
        View("quality", "Data", quality.draw),
    )
}
