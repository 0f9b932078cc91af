"""Wide embeddings: the exchange is bound by bytes, and most of its values belong to wide rows.

Detects
    Exposed transfer of vectors and gradients beyond its latency, at least ``MIN_SHARE`` of the step window
    and ``MIN_PAYLOAD_SHARE`` of that transfer, where tables of at least ``MIN_DIM`` values per row return
    at least ``MIN_WIDE_SHARE`` of the values.
Why it costs
    Every lookup sends its whole row (or pooled row) back. 100M rows of 256 values and 200M rows of 128 store
    the same, but the second returns half as much per lookup.
Evidence
    The part of the exposed transfer that grows with bytes, and the share of wide tables in the values.
Remedy
    Half the dimension and twice the rows: same memory, fewer collisions per row, half the bytes.
How the gain is predicted
    Replayed with half the values in exchanges and lookups (`narrow=2`). Before that a ceiling: half of the
    transfer beyond latency.
When this is wrong
    Where the width carries quality that more rows cannot replace. Rows that already are one per id gain
    nothing from more rows.
"""

from __future__ import annotations

from traceinsight.advice.exchanges import (
    MIN_SHARE,
    below_stake,
    exposed_ns,
    freed,
    latency_ns,
    vector_rows,
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

MIN_DIM = 256
"""Values of a row. Half of it, 128, is what one warp loads at once (32 lanes of 16 bytes): down to there a
narrower row costs no lookup efficiency."""

MIN_WIDE_SHARE = 0.5
"""Share of the values returned per example. When wide tables return less than half of them, narrowing them by
two removes less than a quarter of the bytes."""

MIN_PAYLOAD_SHARE = 0.5
"""Share of the exposed transfer that is not latency. Below it fewer values are not the first remedy."""


def judge(measurements: Measurements) -> Outcome:
    """Judge the part of the exchange that grows with bytes, and the tables behind it."""
    rows = vector_rows(measurements)
    what = "exchange of embeddings"
    if (settled := below_stake(measurements, rows, what)) is not None:
        return settled
    exposed = exposed_ns(measurements, rows)
    payload_ns = exposed - latency_ns(measurements, rows)
    share = measurements.share(payload_ns)
    if share < MIN_SHARE or payload_ns < MIN_PAYLOAD_SHARE * exposed:
        return Clean(
            f"{what}: what grows with bytes is {percent(share)} of the step and "
            f"{percent(payload_ns / exposed)} of the exposed transfer"
        )
    if not measurements.job.tables:
        return NotApplicable(
            "how wide the embedding tables are is not known",
            "Put run.json (traceinsight.capture writes it) beside the traces, with its list of tables.",
        )
    wide_share = _wide_share(measurements)
    if wide_share < MIN_WIDE_SHARE:
        return Clean(
            f"{what}: tables of at least {MIN_DIM} values per row return {percent(wide_share)} of the "
            f"values, below {percent(MIN_WIDE_SHARE)}"
        )
    return Found([_finding(measurements, payload_ns, wide_share)])


def _wide_share(measurements: Measurements) -> float:
    """Each feature of a pooled table returns one row per example."""
    returned = [(table.dim, table.dim * table.features) for table in measurements.job.tables]
    return sum(size for dim, size in returned if dim >= MIN_DIM) / sum(size for _, size in returned)


def _finding(measurements: Measurements, payload_ns: float, wide_share: float) -> Finding:
    share = measurements.share(payload_ns)
    widest = max(table.dim for table in measurements.job.tables)
    return Finding(
        rule=RULE.id,
        severity=severity_of(share / 2),
        confidence="medium",
        title=(
            f"Wide embeddings ({widest} values per row) fill the exchange: {percent(share)} of the step is "
            "transfer that grows with their width"
        ),
        ranks=list(measurements.run.ranks),
        evidence=[
            share_evidence("exposed_payload", share, "of the step window, mean over ranks; latency excluded"),
            share_evidence("wide_tables", wide_share, f"of the values, in rows of {MIN_DIM} or more"),
            Evidence(metric="widest_row", value=widest, unit="count", where="values per row"),
        ],
        gain=ceiling(measurements.step_ns, freed(measurements, payload_ns / 2)),
        action=(
            "Halve embedding_dim and double num_embeddings of the wide tables (same memory), retrain, and "
            "project up in the dense part if it needs the old width. Start with the tables that return most."
        ),
        quality_risk=(
            "High: this is another model. Narrower rows hold less per id, more rows collide less. Compare "
            "normalized entropy after full training, and on new and rare ids, before keeping it."
        ),
        edits=["narrow=2"],
    )


RULE = Rule("wide-embeddings", "Wide rows fill the exchange", judge)
