"""What the analysis adds to a timeline: waits, steps and findings, as stretches of the common clock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from traceinsight.base.units import format_ns
from traceinsight.diagnosis import Diagnosis, Finding
from traceinsight.replay.critical_path import PathKind, critical_path
from traceinsight.replay.prepared import Unpredictable, prepare
from traceinsight.replay.solve import replay
from traceinsight.trace.activity import activities
from traceinsight.trace.recording import MISSING
from traceinsight.trace.trace_set import TraceSet


@dataclass(frozen=True, slots=True)
class Mark:
    """One stretch of time with a name and what is known of it."""

    name: str
    start_ns: int
    end_ns: int
    facts: Mapping[str, object] = field(default_factory=dict)


def wait_marks(trace_set: TraceSet) -> dict[int, list[Mark]]:
    """By rank: from its own arrival at a collective to the last member's.

    Only collectives that every member was captured for: otherwise the last one may be another.
    """
    marks: dict[int, list[Mark]] = defaultdict(list)
    for one in trace_set.collectives:
        if not one.complete:
            continue
        last = one.ranks[one.starts_ns.index(one.last_arrival_ns)]
        for rank, start in zip(one.ranks, one.starts_ns, strict=True):
            if start < one.last_arrival_ns:
                facts = {"collective": one.label or one.operation, "step": one.step, "phase": str(one.phase)}
                mark = Mark(f"wait for rank {last}: {one.operation}", start, one.last_arrival_ns, facts)
                marks[rank].append(mark)
    return marks


_PATH_WORDS = {
    PathKind.HOST: "host",
    PathKind.LAUNCH: "launch to start",
    PathKind.DELAY: "delay that nothing recorded explains",
    PathKind.BEFORE: "under way when the analysed steps began",
}


def path_marks(trace_set: TraceSet) -> dict[int, list[Mark]]:
    """By rank: its pieces of the critical path. Empty where the replay does not explain the steps."""
    prepared = prepare(trace_set, activities(trace_set))
    marks: dict[int, list[Mark]] = defaultdict(list)
    if isinstance(prepared, Unpredictable):
        return marks
    recordings = {trace.rank: trace.recording for trace in prepared.trace_set.ranks}
    for graph in prepared.graphs:
        path = critical_path(graph, replay(graph))
        columns = (path.rank, path.start_ns, path.end_ns, path.kind, path.event)
        for rank, start, end, kind, event in zip(*(one.tolist() for one in columns), strict=True):
            what = PathKind(kind)
            name = _PATH_WORDS[what] if event == MISSING else recordings[rank].name_of(event)
            marks[rank].append(Mark(name, start, end, {"kind": what.name.lower()}))
    return marks


def step_marks(trace_set: TraceSet) -> dict[int, list[Mark]]:
    """By rank: the windows that every number rests on."""
    return {
        rank.rank: [
            Mark(f"step {number}", *_window(trace_set, rank.rank, step.window_ns))
            for number in trace_set.steps
            if (step := rank.step(number)) is not None
        ]
        for rank in trace_set.ranks
    }


def finding_marks(trace_set: TraceSet, diagnosis: Diagnosis) -> dict[str, list[Mark]]:
    """One track per finding: it holds in all analysed steps, so each of them bears its title."""
    by_number: dict[str, list[Mark]] = defaultdict(list)
    for marks in step_marks(trace_set).values():
        for mark in marks:
            by_number[mark.name].append(mark)
    spans = {
        name: (min(m.start_ns for m in some), max(m.end_ns for m in some)) for name, some in by_number.items()
    }
    return {
        f"{finding.rule} ({finding.severity})": [
            Mark(finding.title, start, end, {"step": name, **_facts(finding)})
            for name, (start, end) in spans.items()
        ]
        for finding in diagnosis.findings
    }


def _facts(finding: Finding) -> dict[str, object]:
    facts: dict[str, object] = {"ranks": finding.ranks, "do": finding.action, "risk": finding.quality_risk}
    if finding.gain is not None:
        facts["gain"] = f"{format_ns(finding.gain.step_ns.expected)} per step ({finding.gain.kind})"
    return facts


def _window(trace_set: TraceSet, rank: int, window_ns: tuple[int, int]) -> tuple[int, int]:
    offset = trace_set.offset_ns(rank)
    return window_ns[0] - offset, window_ns[1] - offset
