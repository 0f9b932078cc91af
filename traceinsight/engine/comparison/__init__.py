"""From two diagnoses to what changed between the runs."""

from traceinsight.engine.comparison.compare import compare
from traceinsight.engine.comparison.gates import Limit, parse_limit
from traceinsight.engine.comparison.predictions import hold_predictions

__all__ = ["Limit", "compare", "hold_predictions", "parse_limit"]
