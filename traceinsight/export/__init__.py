"""Traces for other viewers: all ranks of a run in one file, and what was found as tracks of its own."""

from traceinsight.export.chrome import write_chrome_trace

__all__ = ["write_chrome_trace"]
