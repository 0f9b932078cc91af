"""Small kernels: much of the device's time goes into kernels too short to be worth a launch.

Detects
    Elementwise, reduction and optimizer kernels shorter than ``SMALL_NS`` on average, at least ``MIN_COUNT``
    per step, which take at least ``MIN_SHARE`` of the step window, where replay says that fusing them saves
    5 % of the step.
Why it costs
    Each kernel reads its operands from memory and writes its result back, though the next one needs it at
    once, and between two kernels a device pauses for a few us. Many small ones keep it busy with that.
Evidence
    Their number, mean duration and share of the step.
Remedy
    torch.compile of the dense part, a fused optimizer, fused loss and normalisation.
How the gain is predicted
    Replayed with fused small kernels (`fuse`). Before that a ceiling: half their time, since what a fused
    kernel keeps in registers is not written and read again.
When this is wrong
    Where the model is compiled and its kernels do not say so by name; where they run beside transfers that
    the step waits for anyway, replay counts that.
"""

from __future__ import annotations

from traceinsight.advice.exchanges import NO_DEVICE
from traceinsight.advice.measurements import Measurements
from traceinsight.advice.rule import (
    Borderline,
    Clean,
    Outcome,
    Rule,
    ceiling,
    percent,
    severity_of,
    share_evidence,
)
from traceinsight.diagnosis import Evidence, Finding, NanosecondRange

SMALL_NS = 20_000
"""A kernel shorter than this moves little: in 20 us a current GPU reads 40 MB and more."""

MIN_COUNT = 50.0
"""Per step. Fewer are no more than a step needs."""

MIN_SHARE = 0.05
"""Share of the step window. Below it, even no such kernel at all would gain less than noise."""

_FAMILIES = ("elementwise", "reduction", "optimizer")
_LEFT = 0.5


def judge(measurements: Measurements) -> Outcome:
    """Judge the kernels that a compiler can fuse; only replay makes a finding of them."""
    if not measurements.partition:
        return NO_DEVICE
    rows = [row for row in measurements.kernels if row.family in _FAMILIES]
    count, busy_ns = sum(row.count_per_step for row in rows), sum(row.busy_ns for row in rows)
    share = measurements.share(busy_ns)
    if count < MIN_COUNT:
        return Clean(f"small kernels: {count:.0f} per step that could be fused, below {MIN_COUNT:.0f}")
    if busy_ns >= SMALL_NS * count:
        return Clean(f"small kernels: those that could be fused take {busy_ns / count / 1e3:.0f} us each")
    if share < MIN_SHARE:
        return Clean(f"small kernels: they take {percent(share)} of the step, below {percent(MIN_SHARE)}")
    clean = Clean(f"small kernels: fusing them is not worth it by replay, though they take {percent(share)}")
    return Borderline(_finding(measurements, count, busy_ns, share), clean)


def _finding(measurements: Measurements, count: float, busy_ns: int, share: float) -> Finding:
    mean_us = busy_ns / count / 1e3
    freed = round(busy_ns * _LEFT)
    return Finding(
        rule=RULE.id,
        severity=severity_of(share),
        confidence="medium",
        title=f"{count:,.0f} small kernels of {mean_us:.1f} us take {percent(share)} of the step",
        ranks=list(measurements.run.ranks),
        evidence=[
            share_evidence("small_kernels", share, "of the step window, sum of durations, mean over ranks"),
            Evidence(metric="kernels_per_step", value=count, unit="count", where="mean over ranks"),
            Evidence(metric="mean_duration", value=busy_ns / count, unit="ns", where="of these kernels"),
        ],
        gain=ceiling(measurements.step_ns, NanosecondRange(low=0, expected=freed, high=freed)),
        action=(
            "torch.compile the dense part (layers, loss, metrics) and take a fused optimizer (fused=True); "
            "check with TORCH_LOGS=graph_breaks that the graph is whole. Then look at what is left in Kernel "
            "families."
        ),
        quality_risk="Fused kernels may round differently: compare the loss curve of a short run.",
        edits=["fuse"],
    )


RULE = Rule("small-kernels", "Kernels too short to be worth a launch", judge)
