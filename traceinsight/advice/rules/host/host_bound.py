"""Host-bound: devices idle because the host launches too late, synchronises, or allocates.

Detects
    Idle device time caused by host operators and launch overhead, host synchronisation and the memory
    allocator together, as share of the step window on the median rank, at least ``MIN_SHARE``; below it,
    where replay says that a remedy saves 5 % of the step all the same.
Why it costs
    A GPU runs only what has been launched. Where the host is slower than the kernels, its time is the
    step time; a synchronisation drains the queue, and every launch after it comes late.
Evidence
    The three causes apart, as shares of the step window.
Remedy
    Fewer, larger kernels (torch.compile, CUDA graphs, fused optimizers), no synchronisation in the step,
    no allocation in the step.
How the gain is predicted
    Replayed with fused small kernels (`fuse`) and without synchronisation (`no-host-stall`), where the idle
    time shows that cause; what the allocator costs has no such model. Before that a ceiling: the idle time of
    these causes; least and largest rank as bounds.
When this is wrong
    Profiling itself slows the host (with_stack most of all): the share without the profiler is smaller.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from traceinsight.advice.measurements import Measurements, range_over_ranks
from traceinsight.advice.rule import (
    Borderline,
    Clean,
    Found,
    NotApplicable,
    Outcome,
    Rule,
    ceiling,
    lower_first,
    percent,
    severity_of,
    share_evidence,
)
from traceinsight.base.statistics import median
from traceinsight.diagnosis import Finding, Partition

MIN_SHARE = 0.10
"""Share of the step window. Twice the floor of the other rules: the profiler alone adds some percent of
host time to every step, which would be mistaken for the job's own."""

_CAUSES = {
    "host": ("host", "launch_latency"),
    "host_sync": ("host_sync",),
    "allocator": ("allocator",),
}
_NAMES = {
    "host": "host operators and launch overhead",
    "host_sync": "host synchronisation",
    "allocator": "memory allocation",
}
_ACTIONS = {
    "host": (
        "Launch less: torch.compile(dense part, mode='reduce-overhead') or CUDA graphs, fused optimizers, "
        "grouped embedding lookups; larger batches amortise the rest. Then look for Python work between "
        "steps (logging, metrics)."
    ),
    "host_sync": (
        "Keep the host from waiting for the device inside a step: no .item(), .cpu(), nonzero(), "
        "boolean indexing or tensor printing; collect metrics on the device and read them every N steps."
    ),
    "allocator": (
        "Stop allocating inside the step: PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, constant "
        "shapes, less memory pressure; no torch.cuda.empty_cache() in the loop."
    ),
}


_EDITS = {"host": "fuse", "host_sync": "no-host-stall"}


def judge(measurements: Measurements) -> Outcome:
    """Judge the idle time that the host causes."""
    if not measurements.partition or not measurements.capture.host_recorded:
        return NotApplicable(
            "the host side or the device was not recorded", "Profile with activities=[CPU, CUDA]."
        )
    if not measurements.capture.launches_recorded:
        return NotApplicable(
            "the launches of the kernels were not recorded", "Keep cuda_runtime events in the trace."
        )
    causes = [cause for group in _CAUSES.values() for cause in group]
    per_rank = measurements.per_rank(lambda row: _idle_ns(row, causes))
    share = _median_share(measurements, causes)
    if share < MIN_SHARE:
        clean = Clean(
            f"idle time caused by the host is {percent(share)} of the step, below {percent(MIN_SHARE)}"
        )
        return Borderline(_finding(measurements, per_rank, share), clean) if share > 0 else clean
    return Found([_finding(measurements, per_rank, share)])


def _idle_ns(row: Partition, causes: Iterable[str]) -> int:
    return sum(row.idle_by_cause_ns.get(cause, 0) for cause in causes)


def _median_share(measurements: Measurements, causes: Iterable[str]) -> float:
    """Idle time of these causes on the median rank, as share of the step window."""
    per_rank = measurements.per_rank(lambda row: _idle_ns(row, causes))
    return measurements.share(median(list(per_rank.values())))


def _finding(measurements: Measurements, per_rank: dict[int, float], share: float) -> Finding:
    shares = {name: _median_share(measurements, causes) for name, causes in _CAUSES.items()}
    main = max(_CAUSES, key=lambda name: shares[name])
    return Finding(
        rule=RULE.id,
        severity=severity_of(share),
        confidence="high" if len(measurements.run.steps) > 1 else "medium",
        title=(
            f"The {measurements.device_word}s wait for the host: {percent(share)} of the step, "
            f"mostly {_NAMES[main]}"
        ),
        ranks=[rank for rank, ns in per_rank.items() if measurements.share(ns) >= MIN_SHARE],
        evidence=[
            share_evidence("idle_by_host", share, "of the step window, median rank"),
            *(
                share_evidence(f"idle_{name}", value, f"of the step window, median rank: {_NAMES[name]}")
                for name, value in shares.items()
                if value > 0
            ),
        ],
        gain=ceiling(measurements.step_ns, range_over_ranks(per_rank)),
        action=_action(main, shares),
        quality_risk=(
            "torch.compile and fused optimizers may change rounding: compare the loss curve of a short run."
        ),
        edits=_edits(shares),
    )


def _action(main: str, shares: Mapping[str, float]) -> str:
    """That of the main cause; a stall is worth more than its own idle time: launches after it are late."""
    if main == "host_sync" or not shares["host_sync"]:
        return _ACTIONS[main]
    stalls = lower_first(_ACTIONS["host_sync"])
    return f"{_ACTIONS[main]} Stalls make the launches after them late, too: {stalls}"


def _edits(shares: Mapping[str, float]) -> list[str]:
    """The remedies of all causes that the idle time shows, largest first: replay tells what each brings."""
    ordered = sorted(shares, key=lambda name: -shares[name])
    return [_EDITS[name] for name in ordered if name in _EDITS and shares[name] > 0]


RULE = Rule("host-bound", "Devices idle because the host launches too late", judge)
