"""Findings with replayed gains and the roadmap of built jobs, whose step after each change is known."""

from collections.abc import Sequence
from dataclasses import replace

import msgspec
import pytest

from tests.builders import MS, JobBuilder, Late
from tests.replay.jobs import load, step_ns
from traceinsight.advice.measurements import Measurements
from traceinsight.advice.roadmap import WORTH_SHARE
from traceinsight.advice.rule import percent, severity_of
from traceinsight.analyses.partition import partition
from traceinsight.diagnosis import Finding, Gain, Interval, NanosecondRange
from traceinsight.engine.facts import capture_facts, run_facts
from traceinsight.engine.judgement import Judgement
from traceinsight.engine.roadmap import Planned, plan_changes
from traceinsight.replay.prepared import Unpredictable
from traceinsight.trace.activity import activities
from traceinsight.trace.trace_set import TraceSet

LATE = JobBuilder(late=(Late(2, 2 * MS),))


def finding(rule: str, edits: list[str], ceiling_ns: int | None) -> Finding:
    gain = None
    if ceiling_ns is not None:
        size = NanosecondRange(low=0, expected=ceiling_ns, high=ceiling_ns)
        gain = Gain(kind="ceiling", step_ns=size, speedup=Interval(low=1, expected=1, high=1))
    return Finding(
        rule=rule, severity="major", confidence="high", title=rule, ranks=[], evidence=[], gain=gain,
        action="", quality_risk="", edits=edits,
    )  # fmt: skip


def planned(trace_set: TraceSet, *findings: Finding, borderline: Sequence[Finding] = ()) -> Planned:
    activity = activities(trace_set)
    measurements = Measurements(
        run=run_facts(trace_set, ()),
        partition=partition(trace_set, activity),
        communication=(),
        stragglers=(),
        stragglers_not_judged=None,
        capture=capture_facts(trace_set),
        device_word="GPU",
    )
    return plan_changes(trace_set, activity, measurements, Judgement(list(findings), list(borderline)))


def test_a_replayed_gain_takes_the_place_of_the_ceiling() -> None:
    late, mended = step_ns(LATE.build()), step_ns(replace(LATE, late=()).build())
    found = planned(load(LATE.build()), finding("straggler", ["no-straggler=2"], 9 * MS))

    (one,), (entry,) = found.findings, found.roadmap
    assert one.gain is not None and (one.gain.kind, one.gain.ceiling_ns) == ("replayed", 9 * MS)
    assert one.gain.step_ns.expected == pytest.approx(late - mended, rel=0.03)
    assert one.gain.step_ns.low <= one.gain.step_ns.expected <= one.gain.step_ns.high
    assert (entry.rule, entry.edit, entry.effort) == ("straggler", "no-straggler=2", "setting")
    assert entry.step_ns is not None and entry.step_ns.expected == pytest.approx(mended, rel=0.01)
    assert entry.speedup == entry.cumulative_speedup
    assert entry.examples_per_s is None  # no manifest
    assert found.replay.predicted and found.replay.residual_share is not None


def test_a_ceiling_stands_where_half_of_it_belongs() -> None:
    gained = round(step_ns(LATE.build()) - step_ns(replace(LATE, late=()).build()))
    trace_set = load(LATE.build())
    mended = finding("straggler", ["no-straggler=2"], gained)
    small = planned(trace_set, mended, finding("unmodelled", [], gained))
    large = planned(trace_set, mended, finding("unmodelled", [], 3 * gained))
    assert [entry.rule for entry in small.roadmap] == ["straggler", "unmodelled"]
    assert [entry.rule for entry in large.roadmap] == ["unmodelled", "straggler"]
    assert [one.rule for one in large.findings] == ["unmodelled", "straggler"]
    assert large.roadmap[0].edit is None and large.roadmap[0].step_ns is None


def test_a_remedy_that_brings_nothing_is_no_step_of_the_roadmap() -> None:
    found = planned(
        load(LATE.build()),
        finding("input-bound", ["no-straggler=1"], 5 * MS),  # rank 1 is never late
        finding("poor-capture", [], None),
    )
    assert [entry.rule for entry in found.roadmap] == ["input-bound", "poor-capture"]
    assert [entry.edit for entry in found.roadmap] == [None, None]  # it does not apply: its ceiling stays


def test_examples_per_second_follow_the_predicted_step() -> None:
    trace_set = replace(load(LATE.build()), manifest={"batch_per_rank": 512}, world_size=4)
    (entry,) = planned(trace_set, finding("straggler", ["no-straggler=2"], MS)).roadmap
    assert entry.step_ns is not None and entry.examples_per_s is not None
    assert entry.examples_per_s.expected == pytest.approx(4 * 512 / (entry.step_ns.expected / 1e9), rel=1e-6)


@pytest.mark.parametrize("batch", [None, "512", -1, 0, 5.5, True, [], 10**400])
def test_a_batch_that_cannot_be_gives_no_rate(batch: object) -> None:
    trace_set = replace(load(LATE.build()), manifest={"batch_per_rank": batch}, world_size=4)
    (entry,) = planned(trace_set, finding("straggler", ["no-straggler=2"], MS)).roadmap
    assert entry.examples_per_s is None


def test_what_the_replay_cannot_explain_keeps_its_ceilings() -> None:
    trace_set = replace(load(LATE.build()), step_source="one window")
    found = planned(
        trace_set, finding("straggler", ["no-straggler=2"], MS), finding("host-bound", ["fuse"], MS)
    )
    assert [entry.edit for entry in found.roadmap] == [None, None]
    assert [one.gain.kind for one in found.findings if one.gain] == ["ceiling", "ceiling"]
    assert not found.replay.predicted and found.replay.reason
    assert msgspec.json.encode(found.replay)


def test_a_loss_whose_cause_was_found_is_no_step_of_its_own() -> None:
    size = finding("exposed-all-to-all", [], 9 * MS)
    cause = finding("cross-node-all-to-all", [], 4 * MS)
    both = planned(load(LATE.build()), size, cause)
    assert [entry.rule for entry in both.roadmap] == ["cross-node-all-to-all"]
    assert {one.rule for one in both.findings} == {"exposed-all-to-all", "cross-node-all-to-all"}
    assert [entry.rule for entry in planned(load(LATE.build()), size).roadmap] == ["exposed-all-to-all"]


def test_a_replay_that_fails_leaves_the_findings_as_they_were() -> None:
    late = finding("straggler", ["no-straggler=nobody"], MS)  # a rule that wrote what no edit can read
    found = planned(load(LATE.build()), late)
    assert found.findings == [late]
    assert [entry.edit for entry in found.roadmap] == [None]
    assert not found.replay.predicted and "failed" in str(found.replay.reason)


def test_gains_and_predicted_steps_are_those_of_todays_replayed_step() -> None:
    found = planned(load(LATE.build()), finding("straggler", ["no-straggler=2"], MS))
    (one,), (entry,), today_ns = found.findings, found.roadmap, found.replay.step_ns
    assert today_ns == pytest.approx(step_ns(LATE.build()), rel=0.01)
    assert today_ns is not None and one.gain is not None
    assert entry.step_ns is not None and entry.cumulative_speedup is not None
    assert today_ns - entry.step_ns.expected == pytest.approx(one.gain.step_ns.expected, abs=2)
    assert today_ns / entry.step_ns.expected == pytest.approx(entry.cumulative_speedup.expected, rel=1e-6)


@pytest.mark.parametrize("where", ["prepare", "Bench", "plan"])
def test_a_replay_that_fails_leaves_the_analysis_alone(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OverflowError("odd trace")

    monkeypatch.setattr(f"traceinsight.engine.roadmap.{where}", fail)
    found = planned(load(LATE.build()), finding("straggler", ["no-straggler=2"], MS))
    assert [entry.edit for entry in found.roadmap] == [None]
    assert [one.gain.kind for one in found.findings if one.gain] == ["ceiling"]
    assert "OverflowError: odd trace" in (found.replay.reason or "")
    assert found.replay.step_ns is None


def test_a_borderline_finding_stands_where_replay_gives_its_remedy_enough() -> None:
    late, mended = step_ns(LATE.build()), step_ns(replace(LATE, late=()).build())
    share = 1 - mended / late
    assert share > WORTH_SHARE
    found = planned(load(LATE.build()), borderline=[finding("straggler", ["no-straggler=2"], 1)])
    (one,) = found.findings
    assert one.title.endswith(f"; replayed, the remedy saves {percent(share)}")
    assert (one.severity, one.confidence) == (severity_of(share), "medium")
    assert [entry.edit for entry in found.roadmap] == ["no-straggler=2"]


def test_a_borderline_finding_falls_where_replay_gives_its_remedy_little(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    borderline = [finding("straggler", ["no-straggler=2"], 1)]
    monkeypatch.setattr("traceinsight.engine.roadmap.WORTH_SHARE", 0.99)
    found = planned(load(LATE.build()), borderline=borderline)
    assert (found.findings, found.roadmap) == ([], [])
    # Nor does it stand where nothing was replayed.
    monkeypatch.setattr("traceinsight.engine.roadmap.prepare", lambda *_: Unpredictable("of a reason", None))
    assert planned(load(LATE.build()), borderline=borderline).findings == []
