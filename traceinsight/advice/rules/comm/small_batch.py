"""Small batch: the exchange is bound by latency, which a larger batch would pay once for more examples.

Detects
    The latency part of exposed all-to-all transfer, at least ``MIN_SHARE`` of the step window and at least
    ``MIN_LATENCY_SHARE`` of that transfer. Latency is what the run's quickest exchange of a small payload
    takes.
Why it costs
    Each exchange sends a message to every peer, however little it carries. A small batch pays that price as
    often as a large one, for fewer examples.
Evidence
    The latency of one exchange, its exposed share of the step, the batch where the manifest has it.
Remedy
    A larger batch per rank; fewer exchanges (group the lookups of several modules in one).
How the gain is predicted
    Replayed per example with twice and four times the batch (`batch=2`, `batch=4`). Before that a ceiling:
    all exposed latency.
When this is wrong
    Where memory holds no larger batch, or where quality needs the small one.
"""

from __future__ import annotations

from traceinsight.advice.exchanges import (
    MIN_SHARE,
    below_stake,
    exchanges_of,
    exposed_ns,
    freed,
    latency_ns,
    latency_of,
)
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
from traceinsight.diagnosis import Evidence, Finding

MIN_LATENCY_SHARE = 0.5
"""Share of the exposed transfer. Where bytes take the larger part, fewer bytes come first."""


def judge(measurements: Measurements) -> Outcome:
    """Judge the latency part of all exchanges."""
    rows = exchanges_of(measurements)
    what = "all-to-all"
    if (settled := below_stake(measurements, rows, what)) is not None:
        return settled
    exposed = exposed_ns(measurements, rows)
    latent_ns = latency_ns(measurements, rows)
    share, of_transfer = measurements.share(latent_ns), latent_ns / exposed
    if share < MIN_SHARE or of_transfer < MIN_LATENCY_SHARE:
        return Clean(
            f"{what}: exposed latency is {percent(share)} of the step and {percent(of_transfer)} of the "
            "exposed transfer"
        )
    latency = latency_of(measurements)
    if not latency.measured:
        return NotApplicable(
            "how much of the exchange is latency is not known: no all-to-all of a known small size was "
            "recorded",
            "Keep the collectives' arguments in the trace (recent PyTorch writes them).",
        )
    return Found([_finding(measurements, latent_ns, latency.ns)])


def _finding(measurements: Measurements, latent_ns: float, one_ns: float) -> Finding:
    share = measurements.share(latent_ns)
    batch = measurements.run.batch_per_rank
    size = [] if batch is None else [Evidence(metric="batch", value=batch, unit="count", where="per rank")]
    return Finding(
        rule=RULE.id,
        severity=severity_of(share),
        confidence="medium",
        title=(
            f"The batch is small for this network: {percent(share)} of the step is latency of exchanges, "
            "whatever they carry"
        ),
        ranks=list(measurements.run.ranks),
        evidence=[
            share_evidence("exposed_latency", share, "of the step window, mean over ranks"),
            Evidence(metric="latency", value=one_ns, unit="ns", where="of the quickest small exchange"),
            *size,
        ],
        gain=ceiling(measurements.step_ns, freed(measurements, latent_ns)),
        action=(
            "Raise the batch per rank to two or four times its size, as far as memory allows, with the "
            "learning rate scaled and warmed up anew. Group lookups so that one exchange serves several "
            "modules."
        ),
        quality_risk=(
            "A larger batch makes fewer updates per example: compare normalized entropy at equal examples "
            "seen, with the learning rate tuned for it."
        ),
        edits=["batch=2", "batch=4"],
    )


RULE = Rule("small-batch", "Latency dominates the exchange", judge)
