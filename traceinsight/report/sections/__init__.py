"""The parts of a report, one module each: from a ``Diagnosis`` to a ``Section``."""
