"""Straggler: a rank, or a group of ranks, comes late to collectives and all others wait for it.

Detects
    Groups established by the straggler analysis: last by time (not by count), in most steps, by more than
    the clock error, and freeing at least 2 % of a step if mended.
Why it costs
    A collective starts moving data when its last member arrives. The others' kernels run meanwhile and
    look like slow communication.
Evidence
    Lateness behind the last of the other ranks, in how many steps, what the group does longer; the tables
    it owns, where their lookups are what takes longer and run.json holds the counted ids.
Remedy
    By cause: split or move the tables the rank owns, mend its input, its host, or its hardware. Sending fewer
    bytes does not help: the others wait for the arrival.
How the gain is predicted
    Replayed with the group no later than the next rank (`no-straggler`), or with tables placed evenly
    (`balance`) where they make it late. Before that a ceiling: the waits for the group that held
    another rank's device up, on the rank that gains least.
When this is wrong
    With ranks not captured the last one may be absent. With one captured step, lateness may be chance.
"""

from __future__ import annotations

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
from traceinsight.advice.tables import listed, spread
from traceinsight.diagnosis import Evidence, Finding, NanosecondRange, Straggler

_GPU_CHECK = "clocks and throttling of their GPUs (nvidia-smi -q -d PERFORMANCE)."
_ACTIONS = {
    "compute": (
        "Compare what these ranks own and run: move tables or hash partitions off them (planner with "
        "measured costs), then check {hardware}"
    ),
    "input": "Give these ranks' data loaders more workers or a faster shard; prefetch the next batch.",
    "host": (
        "Look at these ranks' hosts: CPU contention or pinning (NUMA), Python work only they do (logging, "
        "metrics, checkpoints), and frequency. Fewer launches (torch.compile, CUDA graphs) make all hosts "
        "less sensitive."
    ),
    "host_sync": "Remove the synchronisation only these ranks do: .item(), .cpu(), printed tensors, metrics.",
    "allocator": (
        "These ranks allocate inside the step: set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, or "
        "lower their memory use; a rank near its limit frees and reallocates."
    ),
    "copy": "Pin the batch memory and copy asynchronously on its own stream on these ranks.",
    "unknown": "Capture more steps; compare these ranks' timelines with the others' before each collective.",
}


def judge(measurements: Measurements) -> Outcome:
    """One finding per established group."""
    if measurements.stragglers_not_judged is not None:
        return NotApplicable(
            measurements.stragglers_not_judged,
            "Capture the same steps on all ranks (run the profiler on every rank, not only on rank 0).",
        )
    if not measurements.stragglers:
        return Clean("no rank comes late often enough, beyond the clock error, to cost 2 % of a step")
    return Found([_finding(measurements, straggler) for straggler in measurements.stragglers])


def _finding(measurements: Measurements, straggler: Straggler) -> Finding:
    share = measurements.share(straggler.ceiling_ns)
    ranks = ", ".join(map(str, straggler.ranks))
    many = len(straggler.ranks) > 1
    hardware = _GPU_CHECK if measurements.device_word == "GPU" else "what else runs on their hosts."
    tables = straggler.tables
    owner = f", the owner{'s' if many else ''} of {listed(tables)}" if tables else ""
    remedy = spread(tables) if tables else _ACTIONS[straggler.cause].format(hardware=hardware)
    return Finding(
        rule=RULE.id,
        severity=severity_of(share),
        confidence=straggler.confidence,
        title=(
            f"{'Ranks' if many else 'Rank'} {ranks} {'come' if many else 'comes'} late to the collectives: "
            f"the other ranks wait {percent(share)} of the step for {'them' if many else 'it'}{owner}"
        ),
        ranks=list(straggler.ranks),
        evidence=[
            Evidence(
                metric="lateness",
                value=straggler.lateness_ns.expected,
                unit="ns",
                where="behind the last of the other ranks, per collective in which they came last",
            ),
            share_evidence("last_arrival", straggler.last_share, "of the collectives all ranks meet at"),
            Evidence(
                metric="steps_late",
                value=straggler.steps_late,
                unit="count",
                where=f"of {straggler.steps_judged} analysed steps ({straggler.persistence})",
            ),
        ],
        gain=ceiling(
            measurements.step_ns,
            NanosecondRange(low=0, expected=straggler.ceiling_ns, high=straggler.ceiling_ns),
        ),
        action=f"{straggler.detail} {remedy}",
        quality_risk="None: when ranks arrive does not change the numbers they compute.",
        edits=_edits(straggler, measurements.device_word == "GPU"),
    )


def _edits(straggler: Straggler, on_gpu: bool) -> list[str]:
    """Where their tables make them late, tables move; else whatever delays them ends.

    On CPU ranks a replay cannot tell lookups from other work: there the ranks just come in time.
    """
    in_time = "no-straggler=" + "+".join(map(str, straggler.ranks))
    if not straggler.tables:
        return [in_time]
    return ["balance"] if on_gpu else ["balance", in_time]


RULE = Rule("straggler", "A rank comes late and all others wait for it", judge)
