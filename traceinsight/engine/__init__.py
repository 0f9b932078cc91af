"""From a ``TraceSet`` to a ``Diagnosis``: run the analyses and the rules, and say it in a sentence."""

from traceinsight.engine.diagnose import diagnose

__all__ = ["diagnose"]
