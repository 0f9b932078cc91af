"""From findings to a roadmap: replayed gains where the remedies can be replayed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import msgspec

from traceinsight.advice.measurements import Measurements
from traceinsight.advice.registry import RULES
from traceinsight.advice.roadmap import WORTH_SHARE, Change, alone, effort_of, plan
from traceinsight.advice.rule import percent, severity_of
from traceinsight.base.statistics import median
from traceinsight.diagnosis import Finding, Gain, Interval, NanosecondRange, RoadmapEntry, in_roadmap_order
from traceinsight.diagnosis.prediction import Replay
from traceinsight.engine.facts import count_in
from traceinsight.engine.judgement import Judgement
from traceinsight.engine.whatif import replay_facts, speedup, step_range
from traceinsight.replay.predict import Bench
from traceinsight.replay.prepared import Prepared, Unpredictable, prepare
from traceinsight.trace.activity import Activity
from traceinsight.trace.trace_set import TraceSet


@dataclass(frozen=True, slots=True)
class Planned:
    """Findings with replayed gains, the roadmap, and how far the replay can be trusted."""

    findings: list[Finding]
    roadmap: list[RoadmapEntry]
    replay: Replay


def plan_changes(
    trace_set: TraceSet,
    activity: Mapping[int, Activity],
    measurements: Measurements,
    judgement: Judgement,
) -> Planned:
    """Replay the remedies of all findings.

    Findings come in the order of the roadmap, among them borderline ones whose remedy is worth it. A run that
    the replay does not explain keeps the ceilings of the others, in the order they came in.
    """
    findings = judgement.findings
    try:
        prepared = prepare(trace_set, activity)
        if isinstance(prepared, Prepared):
            return _replayed(prepared, measurements, judgement)
    except Exception as error:  # an odd trace must not take the analysis with it
        said = f"the replay failed ({type(error).__name__}: {error}); please report this"
        prepared = Unpredictable(said, None)
    unpredicted = [RoadmapEntry(rule=finding.rule) for finding in findings if _asks(finding, findings)]
    return Planned(list(findings), unpredicted, replay_facts(prepared))


def _replayed(prepared: Prepared, measurements: Measurements, judgement: Judgement) -> Planned:
    bench = Bench(prepared)
    best = alone(bench, [*judgement.findings, *judgement.borderline])
    findings = [*judgement.findings, *_worth_it(judgement.borderline, best, judgement.findings)]
    replayed = [_with_gain(finding, best.get(finding.rule)) for finding in findings]
    changes = plan(bench, findings)
    entries = [_entry(change, prepared.trace_set, measurements) for change in changes]
    gains_ns = [change.before.per_example_ns - change.after.per_example_ns for change in changes]
    roadmap = _with_unpredicted(entries, gains_ns, replayed)
    return Planned(in_roadmap_order(replayed, roadmap), roadmap, replay_facts(prepared))


def _worth_it(
    borderline: Sequence[Finding], best: Mapping[str, Change], findings: Sequence[Finding]
) -> list[Finding]:
    """Those whose remedy gains more than their rule's measure shows, as grave as that gain.

    A remedy that another finding names already is no news.
    """
    named = {edit for finding in findings for edit in finding.edits}
    found = []
    for finding in borderline:
        change = best.get(finding.rule)
        if change is None or change.gain_share < WORTH_SHARE or change.edit.text in named:
            continue
        named.add(change.edit.text)
        title = f"{finding.title}; replayed, the remedy saves {percent(change.gain_share)}"
        severity = severity_of(change.gain_share)
        found.append(msgspec.structs.replace(finding, title=title, severity=severity, confidence="medium"))
    return found


def _with_gain(finding: Finding, change: Change | None) -> Finding:
    """The finding with what its best edit brings, where one could be replayed."""
    if change is None:
        return finding
    now_ns, after = change.before.expected_ns, change.after
    gain = Gain(
        kind="replayed",
        step_ns=NanosecondRange(
            low=round(now_ns - after.high_ns),
            expected=round(now_ns - after.expected_ns),
            high=round(now_ns - after.low_ns),
        ),
        speedup=_per_example(speedup(now_ns, after), after.examples_factor),
        ceiling_ns=finding.gain.step_ns.expected if finding.gain is not None else None,
        edit=change.edit.text,
    )
    return msgspec.structs.replace(finding, gain=gain)


def _entry(change: Change, trace_set: TraceSet, measurements: Measurements) -> RoadmapEntry:
    before, after = change.before, change.after
    return RoadmapEntry(
        rule=change.rule,
        edit=change.edit.text,
        effort=effort_of(change.edit),
        step_ns=step_range(after),
        speedup=_per_example(
            speedup(before.expected_ns, after), after.examples_factor / before.examples_factor
        ),
        cumulative_speedup=_per_example(speedup(after.before_ns, after), after.examples_factor),
        examples_per_s=_examples_per_s(change, trace_set),
        compute_share=_compute_ns(measurements) * after.work_factor / after.expected_ns,
    )


def _per_example(times: Interval, examples: float) -> Interval:
    return Interval(low=times.low * examples, expected=times.expected * examples, high=times.high * examples)


def _examples_per_s(change: Change, trace_set: TraceSet) -> Interval | None:
    batch = count_in(trace_set.manifest or {}, "batch_per_rank")
    if batch is None or trace_set.world_size is None:
        return None
    examples = batch * trace_set.world_size * change.after.examples_factor
    return Interval(
        low=1e9 * examples / change.after.high_ns,
        expected=1e9 * examples / change.after.expected_ns,
        high=1e9 * examples / max(change.after.low_ns, 1.0),
    )


def _compute_ns(measurements: Measurements) -> float:
    """Compute per step of the median rank."""
    return median(list(measurements.per_rank(lambda row: row.compute_ns).values()))


CEILING_WEIGHT = 0.5
"""What a ceiling counts against a replayed gain in the order: a remedy removes only part of a loss."""


def _with_unpredicted(
    entries: list[RoadmapEntry], gains_ns: Sequence[float], findings: Sequence[Finding]
) -> list[RoadmapEntry]:
    """The predicted changes in their order, and what could only be given a ceiling in its place among them.

    A finding whose replayed remedy gains too little is not in the roadmap: it stays a finding.
    """
    named = {entry.rule for entry in entries}
    placed = list(zip(gains_ns, entries, strict=True))
    for finding in findings:
        replayed = finding.gain is not None and finding.gain.kind == "replayed"
        if finding.rule in named or replayed or not _asks(finding, findings):
            continue
        named.add(finding.rule)
        weight = CEILING_WEIGHT * finding.gain.step_ns.expected if finding.gain is not None else 0.0
        before = next((at for at, (gain, _) in enumerate(placed) if gain < weight), len(placed))
        placed.insert(before, (weight, RoadmapEntry(rule=finding.rule)))
    return [entry for _, entry in placed]


_REMEDIED_BY = {rule.id: rule.remedied_by for rule in RULES}


def _asks(finding: Finding, findings: Sequence[Finding]) -> bool:
    """Whether a finding asks for a change of its own, rather than for those of findings about its cause."""
    causes = _REMEDIED_BY.get(finding.rule, ())
    return not any(other.rule in causes for other in findings)
