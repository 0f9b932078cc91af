"""Input-bound: devices idle while the main thread fetches the next batch.

Detects
    Idle device time during data-loader or batch-loading annotations, as share of the step window on the
    median rank, at least ``MIN_SHARE``.
Why it costs
    Nothing can be launched before the batch is there; the whole fetch is added to the step.
Evidence
    The share of the step window, and the ranks above the threshold.
Remedy
    More loader workers, prefetching, pinned memory, a reader service, or cheaper preprocessing.
How the gain is predicted
    Replayed with the next batch there when the step begins (`no-input-wait`). Before that a ceiling: all
    device idle time spent waiting for input.
When this is wrong
    When the loader carries no annotation (a custom iterator), its time shows as host time instead.
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
from traceinsight.base.statistics import median
from traceinsight.diagnosis import Finding

MIN_SHARE = 0.05
"""Share of the step window; the same 5 % floor as for communication, so that findings compare."""


def judge(measurements: Measurements) -> Outcome:
    """Judge the idle time whose cause is input."""
    if not measurements.partition or not measurements.capture.host_recorded:
        return NotApplicable(
            "the host side or the device was not recorded", "Profile with activities=[CPU, CUDA]."
        )
    if not measurements.capture.input_marks:
        return NotApplicable(
            "no data-loader or batch-loading annotation was recorded",
            'Wrap fetching the batch in record_function("## load_batch ##").',
        )
    per_rank = measurements.per_rank(lambda row: row.idle_by_cause_ns.get("input", 0))
    share = measurements.share(median(list(per_rank.values())))
    if share < MIN_SHARE:
        return Clean(
            f"idle time waiting for input is {percent(share)} of the step, below {percent(MIN_SHARE)}"
        )
    word = measurements.device_word
    return Found(
        [
            Finding(
                rule=RULE.id,
                severity=severity_of(share),
                confidence="high" if len(measurements.run.steps) > 1 else "medium",
                title=f"The {word}s wait for input data: {percent(share)} of the step",
                ranks=[rank for rank, ns in per_rank.items() if measurements.share(ns) >= MIN_SHARE],
                evidence=[
                    share_evidence("idle_input", share, "of the step window, median rank"),
                    share_evidence(
                        "idle_input",
                        measurements.share(max(per_rank.values())),
                        "of the step window, worst rank",
                    ),
                ],
                gain=ceiling(measurements.step_ns, range_over_ranks(per_rank)),
                action=(
                    "Load ahead of the step: DataLoader(num_workers=4 or more, prefetch_factor=2, "
                    "pin_memory=True, persistent_workers=True); copy the next batch on its own stream while "
                    "this one computes (TrainPipelineSparseDist does). If workers are busy, move "
                    "preprocessing out of the trainer."
                ),
                quality_risk="None, as long as the order of samples and their shuffling stay as they are.",
                edits=["no-input-wait"],
            )
        ]
    )


RULE = Rule("input-bound", "Devices idle while the next batch is fetched", judge)
