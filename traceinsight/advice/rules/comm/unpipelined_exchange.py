"""Unpipelined exchange: ids are exchanged inside the step that needs them, with nothing computing.

Detects
    Exposed transfer of the sparse data distribution (phase `sparse_data_dist`), at least ``MIN_SHARE`` of
    the step window, in a job that does not start the next batch's distribution ahead. Below it, where replay
    says that a pipeline saves 5 % of the step all the same: the host waits for the counts, too.
Why it costs
    Ids depend on the batch alone. Exchanged a batch ahead they would travel while the present one computes.
Evidence
    Exposed transfer of the ids, counts and splits as share of the step window.
Remedy
    TrainPipelineSparseDist, which starts the next batch's distribution
    before this batch's forward.
How the gain is predicted
    Replayed with nothing waiting for these exchanges (`overlap=sparse_data_dist`). Before that a ceiling:
    all their exposed transfer.
When this is wrong
    When a pipeline of one's own starts the distribution ahead under another annotation.
"""

from __future__ import annotations

from collections.abc import Sequence

from traceinsight.advice.exchanges import below_stake, exposed_ns, freed
from traceinsight.advice.measurements import Measurements
from traceinsight.advice.rule import (
    Borderline,
    Clean,
    Found,
    Outcome,
    Rule,
    ceiling,
    percent,
    severity_of,
    share_evidence,
)
from traceinsight.diagnosis import CommunicationRow, Finding


def judge(measurements: Measurements) -> Outcome:
    """Judge the exposed exchange of ids."""
    rows = [
        row
        for row in measurements.communication
        if row.op == "all_to_all" and row.phase == "sparse_data_dist"
    ]
    what = "exchange of ids"
    share = measurements.share(exposed_ns(measurements, rows))
    if (settled := below_stake(measurements, rows, what)) is not None:
        if isinstance(settled, Clean) and rows and not measurements.job.ids_sent_ahead:
            return Borderline(_finding(measurements, rows, share), settled)
        return settled
    if measurements.job.ids_sent_ahead:
        return Clean(
            f"{what}: {percent(share)} of the step is exposed though a pipeline starts it a batch ahead; "
            "there is too little compute to hide it"
        )
    return Found([_finding(measurements, rows, share)])


def _finding(measurements: Measurements, rows: Sequence[CommunicationRow], share: float) -> Finding:
    return Finding(
        rule=RULE.id,
        severity=severity_of(share),
        confidence="high" if len(measurements.run.steps) > 1 else "medium",
        title=f"Ids are exchanged with nothing computing: {percent(share)} of the step",
        ranks=list(measurements.run.ranks),
        evidence=[share_evidence("exposed_id_exchange", share, "of the step window, mean over ranks")],
        gain=ceiling(measurements.step_ns, freed(measurements, exposed_ns(measurements, rows))),
        action=(
            "Train with TrainPipelineSparseDist(model, optimizer, device): it exchanges the next "
            "batch's ids while this one computes. It needs the sharded modules' inputs to depend on "
            "the batch alone."
        ),
        quality_risk="None: the same ids are looked up in the same rows, only earlier.",
        edits=["overlap=sparse_data_dist"],
    )


RULE = Rule("unpipelined-exchange", "Ids are exchanged inside the step that needs them", judge)
