"""How a job scales over runs of several sizes: each run measured by itself, then all of them compared."""

from traceinsight.engine.scaling.compare import require_several, scale
from traceinsight.engine.scaling.measured import MeasuredRun, measure

__all__ = ["MeasuredRun", "measure", "require_several", "scale"]
