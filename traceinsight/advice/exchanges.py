"""Sums over exchanges that several rules need: what is exposed, what of it is latency, what crosses nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from traceinsight.advice.measurements import Measurements, range_over_ranks
from traceinsight.advice.rule import Clean, NotApplicable, percent
from traceinsight.base.collective_names import element_bytes, moves_vectors
from traceinsight.diagnosis import Collective, CommunicationRow, NanosecondRange
from traceinsight.replay.facts import MAX_LATENCY_NS, SMALL_PAYLOAD_BYTES

MIN_SHARE = 0.05
"""Share of the step window. Below it, a perfect remedy gains less than the 5 % that separates a real
improvement from run-to-run noise on shared clusters."""

FORMAT_BYTES = {"fp32": 4, "fp16": 2, "bf16": 2, "fp8": 1, "int8": 1}
"""Bytes of a value in the number formats of the wire."""

NO_DEVICE = NotApplicable(
    "no device activity was recorded in a step", "Profile with activities=[CPU, CUDA] on every rank."
)


def exchanges_of(measurements: Measurements) -> list[CommunicationRow]:
    """All kinds of all-to-all."""
    return [row for row in measurements.communication if row.op == "all_to_all"]


def vector_rows(measurements: Measurements) -> list[CommunicationRow]:
    """The kinds that move embedding vectors or their gradients."""
    return [
        row for row in measurements.communication if moves_vectors(row.op, row.label, row.phase, row.dtype)
    ]


def below_stake(
    measurements: Measurements, rows: Sequence[CommunicationRow], what: str
) -> Clean | NotApplicable | None:
    """Why these kinds need no remedy or cannot be judged; None when their exposed transfer is at stake.

    ``what`` names the kinds in a sentence.
    """
    if not measurements.partition:
        return NO_DEVICE
    if not rows:
        return Clean(f"{what}: none was recorded")
    transfer_ns = exposed_ns(measurements, rows)
    if measurements.share(transfer_ns) >= MIN_SHARE:
        return None
    if measurements.share(transfer_ns + sum(row.exposed_unsplit_ns for row in rows)) >= MIN_SHARE:
        return unsplit(measurements, rows)
    return Clean(
        f"{what}: exposed transfer is {percent(measurements.share(transfer_ns))} of the step, "
        f"below {percent(MIN_SHARE)}"
    )


def unsplit(measurements: Measurements, rows: Sequence[CommunicationRow]) -> NotApplicable:
    """The answer while waiting cannot be told from transfer; the same words for all rules about exchanges."""
    exchanges = {row.op for row in rows} == {"all_to_all"}
    counted = [row for row in measurements.communication if row.op == "all_to_all" or not exchanges]
    share = measurements.share(sum(row.exposed_transfer_ns + row.exposed_unsplit_ns for row in counted))
    what = "all-to-all" if exchanges else "communication"
    return NotApplicable(
        f"{percent(share)} of the step is exposed {what}, but it may be waiting for a late rank: "
        "other ranks' part of it is missing",
        "Capture the same steps on all ranks.",
    )


def exposed_ns(measurements: Measurements, rows: Iterable[CommunicationRow]) -> int:
    """Exposed transfer of kinds together, ns per step.

    Kinds on streams of their own may be exposed at the same moment, which each of them counts: together they
    are at most all exposed transfer of a rank, mean over ranks.
    """
    per_rank = measurements.per_rank(lambda row: row.exposed_comm_transfer_ns).values()
    whole = sum(per_rank) / len(per_rank) if per_rank else 0.0
    return round(min(sum(row.exposed_transfer_ns for row in rows), whole))


def freed(measurements: Measurements, total_ns: float) -> NanosecondRange:
    """Exposed transfer that would vanish; the ranks with least and most exposed transfer as bounds."""
    spread = range_over_ranks(measurements.per_rank(lambda row: row.exposed_comm_transfer_ns))
    total = round(total_ns)
    return NanosecondRange(low=min(spread.low, total), expected=total, high=max(spread.high, total))


def of_kind(measurements: Measurements, row: CommunicationRow) -> list[Collective]:
    """The collectives of a kind."""
    return [
        one
        for one in measurements.collectives
        if (one.op, one.label, one.phase) == (row.op, row.label, row.phase)
    ]


@dataclass(frozen=True, slots=True)
class Latency:
    """What an all-to-all takes whatever it carries. Not ``measured``: at most this."""

    ns: float
    measured: bool


def latency_of(measurements: Measurements) -> Latency:
    """From the quickest all-to-all: it is the latency when its payload is small, else it bounds it."""
    exchanges = [one for one in measurements.collectives if one.op == "all_to_all" and one.transfer_ns]
    small = [one for one in exchanges if one.bytes is not None and one.bytes <= SMALL_PAYLOAD_BYTES]
    if small:
        return Latency(float(min(one.transfer_ns or 0 for one in small)), measured=True)
    quickest = min((one.transfer_ns or 0 for one in exchanges), default=0)
    return Latency(float(min(quickest, MAX_LATENCY_NS)), measured=False)


def latency_ns(measurements: Measurements, rows: Sequence[CommunicationRow]) -> float:
    """What of :func:`exposed_ns` is latency, ns per step."""
    latency = latency_of(measurements).ns
    added = sum(row.exposed_transfer_ns for row in rows)
    total = 0.0
    for row in rows:
        transfers = [one.transfer_ns or 0 for one in of_kind(measurements, row)]
        if sum(transfers):
            total += row.exposed_transfer_ns * sum(min(latency, one) for one in transfers) / sum(transfers)
    return total * exposed_ns(measurements, rows) / added if added else 0.0


def value_bytes(measurements: Measurements, row: CommunicationRow) -> int | None:
    """Bytes per value on the wire; None when nothing says it.

    As recorded; else as the manifest has it; else by TorchRec's annotations: the widest format of its
    encoders, and FP32 where there is none.
    """
    if (recorded := element_bytes(row.dtype)) is not None:
        return recorded
    if (wire := measurements.job.wire_formats.get(row.phase)) is not None:
        return FORMAT_BYTES.get(wire)
    if encoded := [FORMAT_BYTES[name] for name in measurements.run.quantized_comms if name in FORMAT_BYTES]:
        return max(encoded)
    annotated = any(one.label is not None for one in measurements.communication)
    return FORMAT_BYTES["fp32"] if annotated and not measurements.run.quantized_comms else None
