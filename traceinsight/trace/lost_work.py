"""How much of a step's device work the profiler, or a cut file, has lost."""

from __future__ import annotations

import numpy as np

from traceinsight.trace.recording import EventKind, Int64, Recording
from traceinsight.trace.steps import Steps

_CUT_FILE = "truncated-file"  # the reader's note on a file that stops in the middle


def lost_shares(recording: Recording, launch: Int64, steps: Steps) -> tuple[float, ...]:
    """Per step: the share of kernel launches that no GPU event answers (0..1).

    A step of a cut file without a single recorded launch counts as lost: files hold operators first,
    launches and kernels later. Without GPU work no launch tells what a cut file lacks: whole kinds of events
    may be missing from every step, so all count as lost. Otherwise nothing is lost there.
    """
    cut = any(note.code == _CUT_FILE for note in recording.notes)
    if not recording.has_gpu_work:
        return (float(cut),) * len(steps.steps)
    launches = recording.named(recording.of_kind(EventKind.RUNTIME), _launches_kernel)
    step, answered = steps.of_event[launches], np.isin(launches, launch)
    count = len(steps.steps)
    inside = (step >= 0) & (step < count)
    made = np.bincount(step[inside], minlength=count)
    lost = np.bincount(step[inside & ~answered], minlength=count)
    shares = np.where(made > 0, lost / np.maximum(made, 1), float(cut))
    return tuple(shares.tolist())


def _launches_kernel(name: str) -> bool:
    return "LaunchKernel" in name or "ModuleLaunch" in name
