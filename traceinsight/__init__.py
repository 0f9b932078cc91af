"""Profiling and bottleneck analysis for distributed recommendation-model training.

The public functions are re-exported lazily so that ``import traceinsight`` stays quick::

    import traceinsight
    diagnosis = traceinsight.analyze("traces/")
    print(diagnosis.verdict)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from traceinsight.api import analyze, compare, diagnose, load, load_run, scaling

__version__ = "0.1.0"
__all__ = ["__version__", "analyze", "compare", "diagnose", "load", "load_run", "scaling"]


def __getattr__(name: str) -> object:
    """Import a public function on first use (PEP 562)."""
    if name in {"analyze", "compare", "diagnose", "load", "load_run", "scaling"}:
        from traceinsight import api  # noqa: PLC0415 - the point of the lazy import

        return getattr(api, name)
    raise AttributeError(f"module 'traceinsight' has no attribute {name!r}")
