"""Reads profiler traces: any bytes in, recordings and notes (or one clear error) out."""

from __future__ import annotations

from traceinsight.reading.load import load
from traceinsight.reading.result import LoadResult, OtherRun

__all__ = ["LoadResult", "OtherRun", "load"]
