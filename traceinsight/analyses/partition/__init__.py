"""Where each step's time went on each rank's device: six parts that sum to the window exactly."""

from traceinsight.analyses.partition.windows import partition, step_times

__all__ = ["partition", "step_times"]
