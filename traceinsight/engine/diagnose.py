"""Run every analysis and every rule on one trace set."""

from __future__ import annotations

from collections.abc import Sequence

from traceinsight.advice.measurements import Measurements
from traceinsight.advice.registry import RULES
from traceinsight.analyses.all_to_all_matrix import all_to_all_matrix
from traceinsight.analyses.communication import clocks, collectives, communication
from traceinsight.analyses.forward import forward_shares
from traceinsight.analyses.host_link import host_link
from traceinsight.analyses.kernels import kernel_families
from traceinsight.analyses.links import group_links
from traceinsight.analyses.partition import partition, step_times
from traceinsight.analyses.phases import phases
from traceinsight.analyses.shards import find_shards
from traceinsight.analyses.stragglers import TableFacts, find_stragglers
from traceinsight.diagnosis import Diagnosis, Generator, OtherRun
from traceinsight.engine.facts import capture_facts, data_notes, data_quality, run_facts
from traceinsight.engine.job import job_facts
from traceinsight.engine.judgement import judge_all
from traceinsight.engine.roadmap import plan_changes
from traceinsight.engine.verdict import verdict_of
from traceinsight.trace.activity import activities
from traceinsight.trace.trace_set import TraceSet


def diagnose(
    trace_set: TraceSet,
    *,
    version: str,
    other_runs: Sequence[OtherRun] = (),
) -> Diagnosis:
    """The whole diagnosis of one run.

    ``version`` names the program in the document; ``other_runs`` are listed, not analysed.
    """
    activity = activities(trace_set)
    parts = partition(trace_set, activity)
    shards = find_shards(trace_set)
    stragglers = find_stragglers(trace_set, activity, parts, TableFacts(shards.rows, shards.loads))
    every_collective = collectives(trace_set)
    job, job_notes = job_facts(trace_set)
    measurements = Measurements(
        run=run_facts(trace_set, other_runs),
        partition=parts,
        communication=communication(trace_set, activity),
        stragglers=stragglers.stragglers,
        stragglers_not_judged=stragglers.not_judged,
        capture=capture_facts(trace_set),
        device_word="GPU" if trace_set.has_gpu else "rank",
        shards=shards.rows,
        load_balance=shards.balance,
        collectives=[one for one in every_collective if one.step in trace_set.steps],
        job=job,
        kernels=kernel_families(trace_set),
        host_link=None if trace_set.has_gpu else host_link(trace_set, job.node_of),
    )
    judgement = judge_all(RULES, measurements)
    planned = plan_changes(trace_set, activity, measurements, judgement)
    return Diagnosis(
        generator=Generator(name="traceinsight", version=version),
        run=measurements.run,
        verdict=verdict_of(measurements, planned.findings),
        step_times=step_times(trace_set),
        partition=parts,
        phases=phases(trace_set, activity),
        forward=forward_shares(trace_set, activity),
        communication=list(measurements.communication),
        collectives=every_collective,
        clocks=clocks(trace_set),
        all_to_all_matrix=all_to_all_matrix(trace_set),
        links=group_links(trace_set),
        stragglers=list(stragglers.stragglers),
        kernels=list(measurements.kernels),
        findings=planned.findings,
        roadmap=planned.roadmap,
        replay=planned.replay,
        clean=[one for one in judgement.clean if one.rule not in {found.rule for found in planned.findings}],
        not_judged=judgement.not_judged,
        data_quality=data_quality((*data_notes(trace_set), *shards.notes, *job_notes)),
        shards=list(shards.rows),
        rank_loads=list(shards.loads),
        load_balance=list(shards.balance),
    )
