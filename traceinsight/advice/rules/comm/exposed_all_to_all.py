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
    A ceiling: the exposed transfer time of all exchanges together. No remedy removes all of it.
When this is wrong
    When peers were not captured, waiting cannot be told from transfer: the rule then says nothing rather
    than blame the network for a late rank.
"""

from __future__ import annotations

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
from traceinsight.diagnosis import CommunicationRow, Evidence, Finding, NanosecondRange

MIN_SHARE = 0.05
"""Share of the step window. Below it, a perfect remedy gains less than the 5 % that separates a real
improvement from run-to-run noise on shared clusters."""

_MAX_KINDS = 4
_MIN_KIND_SHARE = 0.01  # of the step window; smaller kinds explain nothing


def judge(measurements: Measurements) -> Outcome:
    """Judge the exposed transfer of all all-to-all kinds together."""
    rows = [row for row in measurements.communication if row.op == "all_to_all"]
    if not measurements.partition:
        return NotApplicable(
            "no device activity was recorded in a step", "Profile with activities=[CPU, CUDA] on every rank."
        )
    if not rows:
        return NotApplicable(
            "no all-to-all was recorded in the analysed steps",
            "Expected when the model has no sharded embeddings; else capture whole steps on GPU.",
        )
    transfer_ns = sum(row.exposed_transfer_ns for row in rows)
    unsplit_ns = sum(row.exposed_unsplit_ns for row in rows)
    if measurements.share(transfer_ns) >= MIN_SHARE:
        return Found([_finding(measurements, rows, transfer_ns)])
    share = measurements.share(transfer_ns + unsplit_ns)
    if share >= MIN_SHARE:
        return NotApplicable(
            f"{percent(share)} of the step is exposed all-to-all, but it may be waiting for a late rank: "
            "other ranks' part of it is missing",
            "Capture the same steps on all ranks.",
        )
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
        gain=ceiling(measurements.step_ns, _freed(measurements, exposed_ns)),
        action=_action(measurements),
        quality_risk=(
            "Quantized communication and narrower embeddings change numerics: compare normalized entropy "
            "against the FP32 run over several seeds before keeping them. Pipelining makes the lookup use "
            "the same batch later and changes nothing else."
        ),
    )


def _freed(measurements: Measurements, total_ns: int) -> NanosecondRange:
    """The all-to-all's exposed transfer; the ranks with least and most exposed transfer as bounds."""
    spread = range_over_ranks(measurements.per_rank(lambda row: row.exposed_comm_transfer_ns))
    return NanosecondRange(low=min(spread.low, total_ns), expected=total_ns, high=max(spread.high, total_ns))


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


def _action(measurements: Measurements) -> str:
    if measurements.run.quantized_comms:
        first = f"Communication is already quantized ({', '.join(measurements.run.quantized_comms)})."
    else:
        first = (
            "Send fewer bytes: pass QCommsConfig(forward_precision=CommType.FP8, backward_precision="
            "CommType.BF16) through get_qcomm_codecs_registry() to the sharder."
        )
    return (
        f"{first} Hide the exchange: train with TrainPipelineSparseDist (and prefetch), so that the next "
        "batch's ids travel during this batch's compute. Across nodes: 2D parallelism (DMPCollection) keeps "
        "the all-to-all inside a node."
    )


RULE = Rule("exposed-all-to-all", "The embedding exchange takes step time", judge)
