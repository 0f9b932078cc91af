"""The measurements: pure functions from a ``TraceSet`` to typed results, independent of each other."""
