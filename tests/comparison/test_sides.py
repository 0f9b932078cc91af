"""Comparisons of diagnoses made by hand: batches, presence, notes, and documents that lack something."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.report.diagnoses import (
    MS,
    Parts,
    _torchrec,
    communication_row,
    exchange_finding,
    late_finding,
    late_rank,
    nothing_measured,
    partition_row,
    run,
    straggler,
)
from traceinsight.base.errors import UsageError
from traceinsight.diagnosis import (
    Diagnosis,
    Finding,
    Gain,
    Interval,
    NanosecondRange,
    NotJudged,
    RoadmapEntry,
)
from traceinsight.diagnosis.comparison import Comparison
from traceinsight.engine.comparison import compare, parse_limit

STEPS = [10, 11, 12, 13]


def job(window_ms: int = 200, **changes: Any) -> Diagnosis:
    """Four steps of 8 ranks, each 1 ms longer than the one before; a fifth one ends the capture."""
    own = {key: changes.pop(key) for key in list(changes) if key in Diagnosis.__struct_fields__}
    rows = [
        partition_row(rank, step, window_ms=window_ms + at)
        for at, step in enumerate([*STEPS, 14])
        for rank in range(8)
    ]
    facts = run(steps=[*STEPS, 14], **changes)
    return Parts(_torchrec()).build(**{"run": facts, "partition": rows, "step_times": []} | own)


def held(before: Diagnosis, after: Diagnosis, *limits: str) -> Comparison:
    return compare(before, after, version="1", limits=[parse_limit(text) for text in limits])


def codes(comparison: Comparison) -> list[str]:
    return [note.code for note in comparison.notes]


def test_a_doubled_batch_is_compared_at_equal_batch() -> None:
    # 200 to 203 ms for 512 examples, then 300 to 303 ms for 1024: 150 to 151.5 ms per 512.
    found = held(job(batch_per_rank=512), job(300, batch_per_rank=1024), "regression=5%")
    assert found.step_time.change_ns == 100 * MS
    assert found.equal_batch is not None
    assert found.equal_batch.after_ns == 150_750_000
    assert found.equal_batch.share == pytest.approx(150.75 / 201.5 - 1)
    assert found.verdict.startswith("A step is 25.2% shorter at equal batch")
    assert found.throughput is not None
    # 8 ranks x 512 / 201.5 ms and 8 x 1024 / 301.5 ms
    assert found.throughput.before_examples_per_s == pytest.approx(8 * 512 / 0.2015)
    assert found.throughput.after_examples_per_s == pytest.approx(8 * 1024 / 0.3015)
    assert [gate.outcome for gate in found.gates] == ["passed"]
    assert "batch" in codes(found)
    assert [hint.edit for hint in found.hints] == ["batch=2"]


def test_an_unknown_batch_is_said_to_be_unknown() -> None:
    found = held(job(batch_per_rank=512), job(250))
    assert found.equal_batch is None
    assert found.throughput is None
    assert "cannot be told" in found.notes[0].message


def test_quantized_comms_are_noted_and_hinted() -> None:
    found = held(job(), job(180, quantized_comms=["fp8"]))
    assert "quantized-comms" in codes(found)
    assert [hint.edit for hint in found.hints] == ["qcomms=fp8"]
    given = job(roadmap=[planned("qcomms=fp8", 1.0, 1.0, 1.0)])
    assert compare(given, job(quantized_comms=["fp8"]), version="1", edits=["qcomms=fp8"]).hints == []


def test_what_is_no_edit_is_not_hinted() -> None:
    found = held(job(), job(quantized_comms=["fp4"], batch_per_rank=None, sharding_group_size=None))
    assert found.hints == []


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"device": "NVIDIA H100"}, "device"),
        ({"backend": "gloo"}, "backend"),
        ({"simulated": True}, "origin"),
        ({"world_size": 16}, "world-size"),
        ({"sharding_group_size": 4}, "sharding-groups"),
        ({"step_source": "Optimizer.step"}, "step-source"),
        ({"missing_ranks": [9]}, "missing-ranks"),
    ],
)
def test_what_differs_is_noted(changes: dict[str, Any], code: str) -> None:
    assert code in codes(held(job(), job(250, **changes)))
    assert code not in codes(held(job(), job(250)))


@pytest.mark.parametrize(
    ("window_ms", "limit", "outcome"),
    [
        (220, "regression=5%", "failed"),  # 20 of 201.5 ms: 9.9 %
        (220, "regression=10%", "passed"),
        (180, "regression=0%", "passed"),
        (201, "regression=0%", "passed"),  # 1 ms is 0.5 %: below what counts as a change
        (220, "idle=5%", "failed"),  # the whole growth is idle time
        (220, "exposed-comm=0%", "passed"),
    ],
)
def test_gates(window_ms: int, limit: str, outcome: str) -> None:
    assert [gate.outcome for gate in held(job(), job(window_ms), limit).gates] == [outcome]


@pytest.mark.parametrize("steps", [0, 1])
def test_a_gate_that_cannot_be_judged_does_not_pass(steps: int) -> None:
    rows = [row for row in job().partition if row.step in STEPS[:steps]]
    found = held(job(), job(run=run(steps=STEPS[:steps]), partition=rows), "regression=50%", "idle=50%")
    assert [gate.outcome for gate in found.gates] == ["not_judged", "not_judged"]
    assert "cannot be judged" in found.verdict


def test_nothing_measured_on_either_side() -> None:
    found = held(nothing_measured(), nothing_measured())
    assert found.step_time.before_ns is None
    assert found.verdict == "The change cannot be judged: not measured before and after."
    assert found.partition[0].before_share is None
    assert "same-input" not in codes(found)  # two runs without measurements hold none that are the same


def test_without_device_windows_the_steps_of_the_host_are_compared() -> None:
    own = late_rank()
    hosts = replace(own, partition=[], run=run(steps=[10, 11, 12]))
    slower = [replace(row, cpu_ns=2 * (row.cpu_ns or 0)) for row in own.step_times]
    found = held(hosts, replace(hosts, step_times=slower))
    assert "host-steps" in codes(found)
    assert found.step_time.share == pytest.approx(1.0)


def test_a_finding_that_cannot_be_judged_has_not_vanished() -> None:
    blind = [NotJudged(rule="straggler", reason="one rank", capture_hint="all ranks")]
    found = held(
        job(stragglers=[straggler()], findings=[late_finding(), exchange_finding()]),
        job(250, stragglers=[], findings=[], not_judged=blind),
    )
    assert [row.presence for row in found.stragglers] == ["not_judged_after"]
    assert {(row.before.rule, row.presence) for row in found.findings if row.before} == {
        ("straggler", "not_judged_after"),
        ("exposed-all-to-all", "vanished"),
    }


def test_groups_that_share_a_rank_are_the_same_straggler() -> None:
    before = job(stragglers=[straggler(ranks=[5]), straggler(ranks=[1])])
    after = job(250, stragglers=[straggler(ranks=[5, 6]), straggler(ranks=[7])])
    found = {
        tuple((row.after or row.before).ranks): row.presence  # type: ignore[union-attr]
        for row in held(before, after).stragglers
    }
    assert found == {(5, 6): "stayed", (1,): "vanished", (7,): "appeared"}


def test_a_kind_that_one_run_lacks_is_not_judged() -> None:
    rows = [communication_row(exposed_by_step_ns=[40 * MS] * 5)]
    found = held(job(communication=rows), job(communication=[]))
    (row,) = found.communication
    assert row.after is None
    assert row.exposed.before_ns == 40 * MS
    assert not row.exposed.judged


def test_a_kind_of_an_older_document_is_not_judged() -> None:
    rows = [communication_row(exposed_by_step_ns=None)]
    (row,) = held(job(communication=rows), job(communication=rows)).communication
    assert row.exposed.reason is not None
    assert "older version" in row.exposed.reason


def test_a_kind_is_judged_over_the_counted_steps() -> None:
    def rows(ms: int) -> list[Any]:
        return [communication_row(exposed_by_step_ns=[ms * MS] * 4 + [900 * MS])]  # the last is not counted

    (row,) = held(job(communication=rows(40)), job(communication=rows(10))).communication
    assert row.exposed.change_ns == row.exposed.low_ns == -30 * MS
    assert row.exposed.significant


def planned(edit: str, low: float, expected: float, high: float) -> RoadmapEntry:
    speedup = Interval(low=low, expected=expected, high=high)
    return RoadmapEntry(rule="straggler", edit=edit, cumulative_speedup=speedup)


def test_a_report_predicts_from_its_roadmap() -> None:
    # 201.5 ms today. Batch doubled: 1.25 times faster per example, so 2 x 201.5 / 1.25 = 322.4 ms per step.
    plan = [planned("no-straggler=5", 1.0, 1.0, 1.0), planned("batch=2", 1.0, 1.25, 2.0)]
    found = compare(job(roadmap=plan), job(320), version="1", edits=["no-straggler=5", "batch=2"])
    first, last = found.predictions
    assert first.measured_ns is None
    assert last.step_ns is not None
    assert (last.step_ns.low, last.step_ns.expected, last.step_ns.high) == (
        201_500_000, 322_400_000, 403_000_000,
    )  # fmt: skip
    assert last.measured_ns == 321_500_000
    assert last.error_share == pytest.approx(322.4 / 321.5 - 1)
    assert last.inside_interval


@pytest.mark.parametrize("edits", [["batch=2"], ["no-straggler=5", "fuse"]])
def test_a_roadmap_of_other_edits_predicts_nothing(edits: list[str]) -> None:
    plan = [planned("no-straggler=5", 1.0, 1.0, 1.0), planned("batch=2", 1.0, 1.25, 2.0)]
    with pytest.raises(UsageError, match="roadmap"):
        compare(job(roadmap=plan), job(320), version="1", edits=edits)


def _gaining(edit: str | None, *edits: str) -> Finding:
    speedup = Interval(low=1.0, expected=1.25, high=2.0)
    no_time = NanosecondRange(low=0, expected=0, high=0)
    gain = Gain(kind="replayed", step_ns=no_time, speedup=speedup, edit=edit)
    return replace(late_finding(), gain=gain, edits=list(edits))


@pytest.mark.parametrize(
    "finding", [_gaining("qcomms=fp8", "qcomms=bf16", "qcomms=fp8"), _gaining(None, "qcomms=fp8")]
)
def test_one_edit_is_predicted_by_the_gain_of_its_finding_wherever_the_roadmap_has_it(
    finding: Finding,
) -> None:
    # The roadmap's 1.1 is on top of another edit; alone it is 1.25 times as fast: 201.5 / 1.25 = 161.2 ms.
    plan = [planned("no-straggler=5", 1.0, 1.0, 1.0), planned("qcomms=fp8", 1.1, 1.1, 1.1)]
    before = job(roadmap=plan, findings=[finding])
    (found,) = compare(before, job(160), version="1", edits=["qcomms=fp8"]).predictions
    assert found.step_ns is not None
    assert (found.step_ns.low, found.step_ns.expected, found.step_ns.high) == (
        100_750_000, 161_200_000, 201_500_000,
    )  # fmt: skip
    assert found.error_share == pytest.approx(161.2 / 161.5 - 1)
    for other in (["qcomms=bf16"], ["qcomms=fp8", "no-straggler=5"], ["qcomms=fp8", "qcomms=fp8"]):
        with pytest.raises(UsageError, match="alone"):
            compare(before, job(160), version="1", edits=other)


@pytest.mark.parametrize(("findings", "hints"), [([], ["no-straggler=5"]), ([late_finding()], [])])
def test_the_first_of_the_roadmap_is_hinted_when_its_finding_is_gone(
    findings: list[Any], hints: list[str]
) -> None:
    before = job(roadmap=[planned("no-straggler=5", 1.1, 1.2, 1.3)])
    assert [hint.edit for hint in held(before, job(180, findings=findings)).hints] == hints


@pytest.mark.parametrize(
    "speedup", [(0.0, 1.0, 1.0), (1.0, 0.0, 0.0), (2.0, 1.0, 3.0), (-1.0, 1.0, 2.0), (1e-300, 1e-300, 1.0)]
)
def test_a_roadmap_with_speedups_that_cannot_be_predicts_nothing(speedup: tuple[float, float, float]) -> None:
    before = job(roadmap=[planned("fuse", *speedup)])
    with pytest.raises(UsageError, match="roadmap"):
        compare(before, job(180), version="1", edits=["fuse"])


@pytest.mark.parametrize(("batches", "scaled"), [((1, 1000), True), ((1000, 1), True), ((1, 1001), False)])
def test_batches_too_far_apart_are_not_brought_to_one(batches: tuple[int, int], scaled: bool) -> None:
    found = held(job(batch_per_rank=batches[0]), job(batch_per_rank=batches[1]))
    assert (found.equal_batch is not None) == scaled
    (said,) = [note.message for note in found.notes if note.code == "batch"]
    assert ("at BEFORE's batch" in said) == scaled


def test_a_change_that_cannot_be_judged_reads_as_a_sentence() -> None:
    one = replace(job(), run=run(steps=[10]))
    found = held(one, one)
    assert found.verdict.startswith(
        "The change from 200 ms to 200 ms cannot be judged: one step and one step"
    )


@pytest.mark.parametrize(("empty", "outcome"), [(4, "not_judged"), (3, "not_judged"), (0, "passed")])
def test_steps_of_no_length_pass_no_gate(empty: int, outcome: str) -> None:
    # Without durations a step would have become 100 % shorter.
    rows = [replace(row, window_ns=0) if row.step in STEPS[:empty] else row for row in job().partition]
    rows = [row for row in rows if row.step in STEPS]
    facts = run(steps=STEPS)
    lost = held(job(), job(run=facts, partition=rows), "regression=5%")
    assert [gate.outcome for gate in lost.gates] == [outcome]
    assert ("empty-steps" in codes(lost)) == (empty > 0)
    if empty == 4:
        assert lost.step_time.after_ns is None
        assert lost.step_time.reason == "not measured after"


def test_loud_noise_is_no_sameness() -> None:
    # 200 to 203 ms against steps of 300, 100 and 300: the furthest pair is 103 ms of 201.5 ms apart.
    rows = [
        partition_row(rank, step, window_ms=100 if at % 2 else 300)
        for at, step in enumerate(STEPS)
        for rank in range(8)
    ]
    found = held(job(), job(run=run(steps=STEPS), partition=rows))
    assert found.verdict.startswith("No change beyond the noise of 51.1%")
    assert found.verdict.endswith("smaller changes than that cannot be told from these steps.")
    assert "smaller changes" not in held(job(), job()).verdict
