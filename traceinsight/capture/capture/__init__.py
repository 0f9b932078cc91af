"""Capture traces that can be analysed, from any PyTorch job.

Two lines around and in the training loop::

    with Capture("traces/my_run", batch_per_rank=512) as recording:
        for batch in loader:
            train_step(batch)
            recording.step()

Needs torch and nothing else of this package. See ``docs/capture.md``.
"""

from __future__ import annotations

from traceinsight.capture.recorder import Capture

__all__ = ["Capture"]
