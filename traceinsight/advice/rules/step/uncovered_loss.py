"""Uncovered loss: a large part of the step is lost to something that no other rule is about.

Detects
    The largest of these parts, as share of the step window on the median rank: exposed transfer of other
    collectives than all-to-all, waiting where no straggler is established, exposed copies, idle time behind
    other work (dependency). At least ``MIN_SHARE``; waiting at least ``MIN_WAIT_SHARE``.
Why it costs
    Nothing computes meanwhile. Without this rule a run could look healthy while most of its step is lost.
Evidence
    The part's share of the step window, and the collectives that hold most of it.
Remedy
    Depends on the part: bucket and overlap gradient all-reduces, spread work evenly when ranks take turns
    in being late, copy asynchronously from pinned memory, look at what the device waits for.
How the gain is predicted
    A ceiling: the whole part; least and largest rank as bounds.
When this is wrong
    Where the part is the price of something wanted, such as a synchronous checkpoint in every step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from traceinsight.advice.measurements import Measurements, range_over_ranks
from traceinsight.advice.rule import (
    Clean,
    Found,
    NotApplicable,
    Outcome,
    Rule,
    ceiling,
    percent,
    severity_of,
    share_evidence,
)
from traceinsight.base.statistics import median
from traceinsight.diagnosis import Finding

MIN_SHARE = 0.05
"""Share of the step window; the same 5 % floor as for communication, so that findings compare."""

MIN_WAIT_SHARE = 0.10
"""Share of the step window. Ranks that take turns in being late by a few percent are ordinary jitter, which
no one change mends."""


@dataclass(frozen=True, slots=True)
class _Loss:
    name: str
    per_rank_ns: Callable[[Measurements], dict[int, float]]
    floor: float
    title: str
    action: str
    risk: str


def _other_transfer_ns(measurements: Measurements) -> dict[int, float]:
    """What the all-to-alls leave of a rank's exposed transfer, at most what the other kinds add up to.

    Kinds that run side by side count the same moment each, so neither number alone will do.
    """
    kinds = measurements.communication
    exchanges = float(sum(row.exposed_transfer_ns for row in kinds if row.op == "all_to_all"))
    others = float(sum(row.exposed_transfer_ns for row in kinds if row.op != "all_to_all"))
    total = measurements.per_rank(lambda row: row.exposed_comm_transfer_ns)
    return {rank: min(max(exposed - exchanges, 0.0), others) for rank, exposed in total.items()}


def _wait_ns(measurements: Measurements) -> dict[int, float]:
    """With a straggler established, the rest of the waiting can be judged only once that is mended."""
    waits = measurements.per_rank(lambda row: row.exposed_comm_wait_ns)
    return dict.fromkeys(waits, 0.0) if measurements.stragglers else waits


def _copy_ns(measurements: Measurements) -> dict[int, float]:
    return measurements.per_rank(lambda row: row.exposed_copy_ns)


def _dependency_ns(measurements: Measurements) -> dict[int, float]:
    return measurements.per_rank(lambda row: row.idle_by_cause_ns.get("dependency", 0))


_LOSSES = (
    _Loss(
        "exposed_transfer",
        _other_transfer_ns,
        MIN_SHARE,
        "Collectives other than all-to-all are exposed: {share} of the step is transfer with nothing "
        "computing",
        "Overlap them with compute: DDP buckets small enough to start during backward (bucket_cap_mb), "
        "gradient_as_bucket_view=True, FSDP prefetch; fewer bytes by BF16 gradients; fewer, larger messages.",
        "BF16 gradients change numerics: compare the loss curve. Overlap alone changes nothing.",
    ),
    _Loss(
        "diffuse_wait",
        _wait_ns,
        MIN_WAIT_SHARE,
        "Ranks wait for one another, {share} of the step, and no rank is always the late one",
        "Look for work that differs from step to step: uneven batches (sequence length, pooling), data "
        "loading hiccups, garbage collection, neighbours on the host. Fewer meeting points help too.",
        "None: when ranks arrive does not change the numbers they compute.",
    ),
    _Loss(
        "exposed_copy",
        _copy_ns,
        MIN_SHARE,
        "Copies are exposed: {share} of the step copies with nothing computing",
        "Pin host memory (pin_memory=True), copy with non_blocking=True on a stream of its own one batch "
        "ahead (TrainPipelineSparseDist does), and keep tensors on the device.",
        "None, as long as the copied data is awaited before it is used.",
    ),
    _Loss(
        "idle_dependency",
        _dependency_ns,
        MIN_SHARE,
        "The devices idle behind other work: {share} of the step, launched work waits for something else",
        "Open the timeline there: work was queued and its stream waited for another stream, for a collective "
        "that no thread ran, or for the host. Remove needless stream synchronisation.",
        "None, unless the removed wait protected data that is still in use.",
    ),
)


def judge(measurements: Measurements) -> Outcome:
    """Judge the largest part that no other rule covers."""
    if not measurements.partition:
        return NotApplicable(
            "no device activity was recorded in a step", "Profile with activities=[CPU, CUDA] on every rank."
        )
    found = [(_share(measurements, loss), loss) for loss in _LOSSES]
    share, loss = max(found, key=lambda each: each[0] / each[1].floor)
    if share < loss.floor:
        return Clean(
            f"the largest other loss ({loss.name.replace('_', ' ')}) is {percent(share)} of the step, "
            f"below {percent(loss.floor)}"
        )
    return Found([_finding(measurements, loss, share)])


def _share(measurements: Measurements, loss: _Loss) -> float:
    return measurements.share(median(list(loss.per_rank_ns(measurements).values())))


def _finding(measurements: Measurements, loss: _Loss, share: float) -> Finding:
    per_rank = loss.per_rank_ns(measurements)
    return Finding(
        rule=RULE.id,
        severity=severity_of(share),
        confidence="high" if len(measurements.run.steps) > 1 else "medium",
        title=loss.title.format(share=percent(share)),
        ranks=list(per_rank),
        evidence=[
            share_evidence(loss.name, share, "of the step window, median rank"),
            *(
                share_evidence(
                    loss.name,
                    measurements.share(row.exposed_transfer_ns),
                    f"of the step window, {row.label or f'{row.op} in {row.phase}'}",
                )
                for row in measurements.communication[:3]
                if loss.name == "exposed_transfer" and row.op != "all_to_all" and row.exposed_transfer_ns
            ),
        ],
        gain=ceiling(measurements.step_ns, range_over_ranks(per_rank)),
        action=loss.action,
        quality_risk=loss.risk,
    )


RULE = Rule("uncovered-loss", "A large loss that no other rule is about", judge, remedied_by=("slow-link",))
