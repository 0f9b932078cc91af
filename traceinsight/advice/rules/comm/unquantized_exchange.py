"""Unquantized exchange: embedding vectors or gradients travel in FP32, and their transfer takes step time.

Detects
    Exposed transfer of exchanges of vectors or gradients whose values take at least ``MIN_VALUE_BYTES`` on
    the wire, as share of the step window, at least ``MIN_SHARE``. Below it, where replay says that fewer
    bytes save 5 % of the step all the same.
Why it costs
    A transfer beyond its latency takes as long as it has bytes, and a ranking model does not need 24 bits of
    mantissa on the wire: the same values in FP8 take a quarter of the bytes.
Evidence
    Exposed transfer, bytes per value on the wire, payload per rank and step.
Remedy
    Quantized communication: FP8, or FP16 and BF16 where normalized entropy does not hold.
How the gain is predicted
    Replayed with fewer bytes and the codec's own time on both sides (`qcomms=fp8`, `fp16`, `bf16`). Before
    that a ceiling: the part beyond latency, less what the narrower values need.
When this is wrong
    When a custom exchange encodes its values itself and no dtype was recorded. Where the exchange is mostly
    latency, fewer bytes bring little: the replay says how little.
"""

from __future__ import annotations

from traceinsight.advice.exchanges import (
    MIN_SHARE,
    below_stake,
    exposed_ns,
    freed,
    latency_ns,
    value_bytes,
    vector_rows,
)
from traceinsight.advice.measurements import Measurements
from traceinsight.advice.rule import (
    Borderline,
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

MIN_VALUE_BYTES = 4
"""Bytes per value. FP16 and BF16 are what TorchRec's own guides choose: going below them is a decision of
quality, not an omission."""

_QUANTIZED_BYTES = 1.06  # FP8 with its row-wise scales


def judge(measurements: Measurements) -> Outcome:
    """Judge the exchanges whose values are wide."""
    rows = vector_rows(measurements)
    what = "exchange of embeddings"
    wide = [row for row in rows if (value_bytes(measurements, row) or 0) >= MIN_VALUE_BYTES]
    share = measurements.share(exposed_ns(measurements, wide))
    if (settled := below_stake(measurements, rows, what)) is not None:
        if isinstance(settled, Clean) and wide:
            return Borderline(_finding(measurements, wide, share), settled)
        return settled
    widths = {row.label or row.phase: value_bytes(measurements, row) for row in rows}
    unknown = [row for row in rows if value_bytes(measurements, row) is None]
    if measurements.share(exposed_ns(measurements, unknown)) >= MIN_SHARE:
        return NotApplicable(
            "in which number format the embeddings travel was not recorded",
            "Keep the collectives' arguments in the trace (recent PyTorch writes them), or name the format "
            'in run.json: "qcomms": {"forward": "fp8", "backward": "bf16"}.',
        )
    if share < MIN_SHARE:
        return Clean(
            f"{what}: what travels in FP32 is {percent(share)} of the step, below {percent(MIN_SHARE)} "
            f"(bytes per value: {', '.join(sorted({str(width) for width in widths.values() if width}))})"
        )
    return Found([_finding(measurements, wide, share)])


def _finding(measurements: Measurements, wide: list[CommunicationRow], share: float) -> Finding:
    beyond_latency = exposed_ns(measurements, wide) - latency_ns(measurements, wide)
    recorded = all(row.dtype is not None for row in wide)
    sizes = [row.bytes_per_step for row in wide if row.bytes_per_step is not None]
    payload = [Evidence(metric="payload", value=sum(sizes), unit="bytes", where="per rank and step")]
    return Finding(
        rule=RULE.id,
        severity=severity_of(share),
        confidence="high" if recorded and len(measurements.run.steps) > 1 else "medium",
        title=f"Embeddings are exchanged in FP32: their exposed transfer is {percent(share)} of the step",
        ranks=list(measurements.run.ranks),
        evidence=[
            share_evidence("exposed_fp32_exchange", share, "of the step window, mean over ranks"),
            Evidence(
                metric="bytes_per_value",
                value=max(value_bytes(measurements, row) or 0 for row in wide),
                unit="count",
                where="on the wire, as recorded"
                if recorded
                else "on the wire, since no encoder was recorded",
            ),
            *(payload if sizes else []),
        ],
        gain=ceiling(
            measurements.step_ns,
            freed(measurements, beyond_latency * (1 - _QUANTIZED_BYTES / MIN_VALUE_BYTES)),
        ),
        action=(
            "Pass QCommsConfig(forward_precision=CommType.FP8, backward_precision=CommType.BF16, or FP8) "
            "through get_qcomm_codecs_registry() to the sharders. FP8 needs a GPU; on CPU and where quality "
            "suffers take FP16 forward and BF16 backward."
        ),
        quality_risk=(
            "Values are rounded on the wire: compare normalized entropy with the FP32 run over several "
            "seeds, also on rare ids, before keeping it."
        ),
        edits=["qcomms=fp8", "qcomms=fp16", "qcomms=bf16"],
    )


RULE = Rule("unquantized-exchange", "Embeddings travel in FP32", judge)
