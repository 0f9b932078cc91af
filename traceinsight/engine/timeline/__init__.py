"""All ranks of a run on one clock, to be looked at through a window of any width."""

from traceinsight.engine.timeline.build import timeline_of
from traceinsight.engine.timeline.rows import CATEGORIES, PathRow, Row, Timeline
from traceinsight.engine.timeline.view import Pieces, View, view

__all__ = ["CATEGORIES", "PathRow", "Pieces", "Row", "Timeline", "View", "timeline_of", "view"]
