"""Exposed embedding all-to-all: the exchange of ids, vectors or gradients takes step time.

Detects
    The transfer part of all-to-all collectives while nothing computes, as share of the step window, at
    least ``MIN_SHARE``. Waiting for a late rank is not counted: it is the `straggler` rule's.
Why it costs
    Every rank needs the looked-up vectors before its dense part can go on, and the gradients before its
    tables can be updated. What is not hidden behind compute is added to every step.
Evidence
    Exposed transfer per step by kind of exchange, payload and bus bandwidth where sizes were recorded.
Remedy
    Fewer bytes per value (quantized communication), fewer values (narrower embeddings), hiding
    (a sparse-dist pipeline), or a topology that keeps the exchange inside a node (2D parallelism).
How the gain is predicted
    A ceiling: the exposed transfer time of all exchanges together. No remedy removes all of it; what each
    brings is replayed by the rule that finds its cause.
When this is wrong
    When peers were not captured, waiting cannot be told from transfer: the rule then says nothing rather
    than blame the network for a late rank.
"""

from __future__ import annotations

from traceinsight.advice.exchanges import MIN_SHARE, NO_DEVICE, exposed_ns, freed, unsplit
from traceinsight.advice.measurements import Measurements
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
from traceinsight.diagnosis import CommunicationRow, Evidence, Finding

_MAX_KINDS = 4
_MIN_KIND_SHARE = 0.01  # of the step window; smaller kinds explain nothing


def judge(measurements: Measurements) -> Outcome:
    """Judge the exposed transfer of all all-to-all kinds together."""
    rows = [row for row in measurements.communication if row.op == "all_to_all"]
    if not measurements.partition:
        return NO_DEVICE
    if not rows:
        return NotApplicable(
            "no all-to-all was recorded in the analysed steps",
            "Expected when the model has no sharded embeddings; else capture whole steps on GPU.",
        )
    transfer_ns = exposed_ns(measurements, rows)
    unsplit_ns = sum(row.exposed_unsplit_ns for row in rows)
    if measurements.share(transfer_ns) >= MIN_SHARE:
        return Found([_finding(measurements, rows, transfer_ns)])
    share = measurements.share(transfer_ns + unsplit_ns)
    if share >= MIN_SHARE:
        return unsplit(measurements, rows)
    return Clean(f"exposed all-to-all transfer is {percent(share)} of the step, below {percent(MIN_SHARE)}")


def _finding(measurements: Measurements, rows: list[CommunicationRow], exposed_ns: int) -> Finding:
    share = measurements.share(exposed_ns)
    return Finding(
        rule=RULE.id,
        severity=severity_of(share),
        confidence="high" if len(measurements.run.steps) > 1 else "medium",
        title=(
            f"The embedding exchange (all-to-all) is exposed: {percent(share)} of the step is transfer "
            "with nothing computing"
        ),
        ranks=list(measurements.run.ranks),
        evidence=[
            share_evidence("exposed_all_to_all", share, "of the step window, mean over ranks"),
            *_kinds(measurements, rows),
        ],
        gain=ceiling(measurements.step_ns, freed(measurements, exposed_ns)),
        action=(
            "Take the remedies that other findings name for this exchange first. What they leave can be "
            "hidden: TrainPipelineSemiSync starts the next batch's lookup during this batch's dense part, "
            "on rows that this batch's update has not reached yet."
        ),
        quality_risk=(
            "Fewer bytes change numerics, and a semi-synchronous pipeline looks up rows one update old: "
            "compare normalized entropy against the present run over several seeds."
        ),
    )


def _kinds(measurements: Measurements, rows: list[CommunicationRow]) -> list[Evidence]:
    evidence = []
    for row in rows[:_MAX_KINDS]:
        name = row.label or f"all-to-all in {row.phase}"
        exposed = row.exposed_transfer_ns
        if measurements.share(exposed) < _MIN_KIND_SHARE:
            continue
        evidence.append(
            share_evidence("exposed_all_to_all", measurements.share(exposed), f"of the step window, {name}")
        )
        if row.bytes_per_step is not None:
            evidence.append(
                Evidence(
                    metric="payload",
                    value=row.bytes_per_step,
                    unit="bytes",
                    where=f"per rank and step, {name}",
                )
            )
        if row.bus_gbps is not None:
            evidence.append(
                Evidence(metric="bus_bandwidth", value=row.bus_gbps, unit="GB/s", where=f"median, {name}")
            )
    return evidence


RULE = Rule(
    "exposed-all-to-all",
    "The embedding exchange takes step time",
    judge,
    remedied_by=(
        "slow-network-path",
        "slow-link",
        "nccl-sockets",
        "unquantized-exchange",
        "wide-embeddings",
        "cross-node-all-to-all",
        "small-batch",
        "unpipelined-exchange",
    ),
)
