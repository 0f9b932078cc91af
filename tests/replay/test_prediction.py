"""Predictions against truth: the job after the change is built, too, and its step time is known."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest
from msgspec import structs

from tests.builders import (
    DEFAULT_COLLECTIVES,
    GRADIENT_A2A,
    MS,
    POOLED_A2A,
    US,
    CollectiveSpec,
    JobBuilder,
    Late,
)
from tests.replay.jobs import load, predicted_ns, prepared, step_ns
from tests.trace.recordings import call, recording, step
from traceinsight.base.errors import UsageError
from traceinsight.diagnosis import Interval, NanosecondRange
from traceinsight.diagnosis.prediction import PredictedEdit
from traceinsight.engine.whatif import what_if
from traceinsight.replay.edits.registry import parse_edit
from traceinsight.replay.predict import Bench
from traceinsight.replay.prepared import MAX_RESIDUAL_SHARE, Prepared, Unpredictable, prepare
from traceinsight.replay.solve import replay
from traceinsight.replay.stretch import Stretch, stretches
from traceinsight.trace.activity import activities
from traceinsight.trace.assemble import assemble

DEFAULT = JobBuilder()
WIDE = tuple(
    replace(one, transfer_ns=3 * MS) if one in (POOLED_A2A, GRADIENT_A2A) else one
    for one in DEFAULT_COLLECTIVES
)
LATENCY_NS = 30 * US  # the quickest all-to-all of the built job
CODEC_NS = round(1.25 * 4_000_000 / (2039 * 0.7))
HOST_BOUND = JobBuilder(host_op_ns=400 * US, pieces=20)

JOBS: Mapping[str, JobBuilder] = {
    "device-bound": DEFAULT,
    "two ranks": replace(DEFAULT, world_size=2),
    "many small kernels": replace(DEFAULT, pieces=40),
    "host-bound": HOST_BOUND,
    "late rank": replace(DEFAULT, late=(Late(2, 2 * MS),)),
    "late in one step": replace(DEFAULT, late=(Late(1, 2 * MS, steps=(2,)),)),
    "slow input": replace(DEFAULT, input_delay_ns={1: 5 * MS}),
    "sync stall": replace(DEFAULT, sync_stall_ns=4 * US),
    "jitter": replace(DEFAULT, jitter_ns=300 * US),
    "slow step": replace(DEFAULT, slow_steps={2: 1.6}),
    "wide exchange": replace(DEFAULT, collectives=WIDE),
    "skewed clocks": replace(DEFAULT, clock_ahead_ns={0: 4 * MS, 3: -9 * MS}),
    "no arguments": replace(DEFAULT, arguments=False),
    "cpu": replace(DEFAULT, gpu=False),
    "cpu late rank": replace(DEFAULT, gpu=False, late=(Late(2, 2 * MS),)),
    "cpu jitter": replace(DEFAULT, gpu=False, jitter_ns=300 * US),
}


@pytest.mark.parametrize("name", JOBS)
def test_unedited_replay_is_the_measured_step(name: str) -> None:
    job = JOBS[name].build()
    run = prepared(job)
    for graph in run.graphs:
        assert replay(graph) == pytest.approx(graph.nodes.measured_ns, abs=1)
    assert run.step_ns == pytest.approx(step_ns(job), abs=1)
    assert predicted_ns(job) == pytest.approx(step_ns(job), abs=1)
    # The gap of 1 us before each kernel is what nothing explains.
    assert run.residual.worst_share < 0.02


def quantized(one: CollectiveSpec, share: float) -> CollectiveSpec:
    """The same exchange with so much of its payload, and the codec on both sides."""
    length = LATENCY_NS + (one.transfer_ns - LATENCY_NS) * share + 2 * CODEC_NS
    return replace(one, transfer_ns=round(length))


def exchanges(change: Callable[[CollectiveSpec], CollectiveSpec]) -> tuple[CollectiveSpec, ...]:
    return (WIDE[0], change(WIDE[1]), change(WIDE[2]), WIDE[3])


def quantized_job(share: float) -> JobBuilder:
    return replace(DEFAULT, collectives=exchanges(lambda one: quantized(one, share)))


def narrowed(one: CollectiveSpec) -> CollectiveSpec:
    return replace(one, transfer_ns=LATENCY_NS + (one.transfer_ns - LATENCY_NS) // 2)


def doubled(one: CollectiveSpec) -> CollectiveSpec:
    return replace(one, transfer_ns=LATENCY_NS + 2 * (one.transfer_ns - LATENCY_NS))


WIDE_JOB = replace(DEFAULT, collectives=WIDE)
STALLED = replace(HOST_BOUND, sync_stall_ns=2 * MS)
LATE_EARLY = (Late(2, 4 * MS, phases=("forward",)),)
# edit -> (job before, job after)
PAIRS: Mapping[str, tuple[str, JobBuilder, JobBuilder]] = {
    "late everywhere": ("no-straggler=2", replace(DEFAULT, late=(Late(2, 2 * MS),)), DEFAULT),
    "late in forward": ("no-straggler=2", replace(DEFAULT, late=LATE_EARLY), DEFAULT),
    "two late ranks": ("no-straggler=1+2", replace(DEFAULT, late=(Late(1, MS), Late(2, 2 * MS))), DEFAULT),
    "late input": ("no-straggler=1", replace(DEFAULT, input_delay_ns={1: 12 * MS}), DEFAULT),
    "sync stall": ("no-host-stall", replace(DEFAULT, sync_stall_ns=4 * US), DEFAULT),
    "loader": (
        "no-input-wait",
        replace(DEFAULT, loader_ns=8 * MS),
        replace(DEFAULT, loader_ns=0),
    ),
    "loader of one rank": (
        "no-input-wait",
        replace(DEFAULT, input_delay_ns={3: 12 * MS}),
        replace(DEFAULT, loader_ns=0),
    ),
    "fp8": (
        "qcomms=fp8",
        WIDE_JOB,
        replace(DEFAULT, collectives=exchanges(lambda one: quantized(one, 1.06 / 4))),
    ),
    "bf16": (
        "qcomms=bf16",
        WIDE_JOB,
        replace(DEFAULT, collectives=exchanges(lambda one: quantized(one, 1 / 2))),
    ),
    "narrow": ("narrow=2", WIDE_JOB, replace(DEFAULT, collectives=exchanges(narrowed))),
    "batch": (
        "batch=2",
        WIDE_JOB,
        replace(
            DEFAULT,
            collectives=exchanges(doubled),
            forward_ns=(4 * MS, 4 * MS),
            backward_ns=(6 * MS, 6 * MS),
            copy_ns=40 * US,
        ),
    ),
    "late rank over gloo": (
        "no-straggler=2",
        replace(DEFAULT, gpu=False, late=(Late(2, 2 * MS),)),
        replace(DEFAULT, gpu=False),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_prediction_meets_the_job_that_was_built_with_the_change(name: str) -> None:
    edit, before, after = PAIRS[name]
    truth = step_ns(after.build())
    assert predicted_ns(before.build(), [edit]) == pytest.approx(truth, rel=0.03)


def test_the_pairs_that_matter_do_change_the_step() -> None:
    """Otherwise a prediction of no change would pass."""
    same = {name for name, (_, before, after) in PAIRS.items() if _ratio(before, after) < 1.05}
    assert same <= {"sync stall"}


def _ratio(before: JobBuilder, after: JobBuilder) -> float:
    lengths = sorted((step_ns(before.build()), step_ns(after.build())))
    return lengths[1] / lengths[0]


EDITS = ("qcomms=fp8", "no-straggler=2", "narrow=2", "batch=2")


def test_a_shifted_clock_changes_no_prediction() -> None:
    job = replace(WIDE_JOB, late=(Late(2, 2 * MS),))
    moved = replace(job, clock_ahead_ns={0: 10 * MS, 1: -10 * MS, 2: 3 * MS})
    for edit in EDITS:
        assert predicted_ns(moved.build(), [edit]) == pytest.approx(predicted_ns(job.build(), [edit]), abs=1)


def test_which_rank_is_late_changes_no_prediction() -> None:
    found = [
        predicted_ns(replace(WIDE_JOB, late=(Late(rank, 2 * MS),)).build(), [f"no-straggler={rank}"])
        for rank in (0, 3)
    ]
    assert found[0] == pytest.approx(found[1], abs=1)


def test_gains_are_not_added() -> None:
    """Edits apply one after another; what one has gained, the next cannot gain again."""
    job = replace(WIDE_JOB, late=(Late(2, 2 * MS),)).build()
    once = predicted_ns(job, ["no-straggler=2"])
    assert predicted_ns(job, ["no-straggler=2", "qcomms=fp8"]) < once
    assert predicted_ns(job, ["narrow=2", "narrow=2"]) == pytest.approx(
        predicted_ns(job, ["narrow=4"]), rel=0.001
    )


@pytest.mark.parametrize(
    ("edits", "same_as"),
    [
        (["qcomms=fp8", "qcomms=fp16"], ["qcomms=fp16"]),
        (["qcomms=fp16", "narrow=2", "qcomms=fp8"], ["narrow=2", "qcomms=fp8"]),
        (["nodes=8", "nodes=4"], ["nodes=4"]),
        (["network=efa_p5", "network=tcp_100g"], ["network=tcp_100g"]),
        (["no-straggler=2", "no-straggler=1"], ["no-straggler=1+2"]),
        (["no-straggler=2", "no-straggler=1+2"], ["no-straggler=1+2"]),
    ],
)
def test_of_two_edits_that_set_the_same_the_last_counts(edits: list[str], same_as: list[str]) -> None:
    late = prepared(replace(WIDE_JOB, late=(Late(1, MS), Late(2, 2 * MS))).build())
    manifest = {"nodes": [{"ranks": [0, 1]}, {"ranks": [2, 3]}], "hardware": {"network": "ib_hdr"}}
    bench = Bench(replace(late, trace_set=replace(late.trace_set, manifest=manifest)))
    twice, once = (bench.predict([parse_edit(text) for text in each]) for each in (edits, same_as))
    assert replace(twice, edits=once.edits, explanations=once.explanations) == once
    assert once.expected_ns != pytest.approx(once.before_ns, rel=0.001)


@pytest.mark.parametrize("edit", ["qcomms=fp8", "no-straggler=2", "balance", "overlap=forward"])
def test_nothing_is_done_twice(edit: str) -> None:
    late = tuple(Late(rank, length, phases=("forward",)) for rank, length in enumerate((MS, MS, 3 * MS, MS)))
    answer = what_if(load(replace(WIDE_JOB, late=late).build()), [edit, "narrow=2", edit])
    assert [row.step_ns is None for row in answer.edits] == [False, False, True]
    assert "already" in (answer.edits[2].not_applicable or "")


def test_the_edit_that_counts_names_the_one_it_replaces() -> None:
    answer = what_if(load(WIDE_JOB.build()), ["qcomms=fp8", "qcomms=fp16"])
    assert answer.edits[1].detail == "counts instead of qcomms=fp8"


def test_a_step_that_stays_as_long_with_more_examples_is_doubted() -> None:
    """Host-bound: twice the examples in nearly the same step, where 15 % of a doubling may be off."""
    bench = Bench(prepared(HOST_BOUND.build()))
    found = bench.predict([parse_edit("batch=2")])
    assert found.expected_ns == pytest.approx(found.before_ns, rel=0.02)
    assert found.high_ns / found.expected_ns == pytest.approx(2**0.15, rel=0.01)


def test_the_interval_holds_the_expected_step_and_grows_with_uncertainty() -> None:
    bench = Bench(prepared(WIDE_JOB.build()))
    none, some = bench.predict([]), bench.predict([parse_edit("qcomms=fp8")])
    assert none.low_ns == none.expected_ns == none.high_ns
    assert some.low_ns < some.expected_ns < some.high_ns < none.expected_ns


# Stretches, and runs that are not predicted ----------------------------------------------------------------


def test_a_dropped_step_splits_the_run_into_stretches() -> None:
    job = replace(DEFAULT, steps=7, slow_steps={3: 4.0})
    trace_set = load(job.build())
    assert [one.steps for one in stretches(trace_set)] == [(10, 11, 12), (14, 15, 16)]
    run = prepare(trace_set, activities(trace_set))
    assert not isinstance(run, Unpredictable)
    assert run.step_ns == pytest.approx(step_ns(DEFAULT.build()), rel=0.001)


def test_a_stretch_asks_for_its_steps_on_every_rank() -> None:
    trace_set = load(DEFAULT.build())
    begin, end = Stretch((10, 11)).host_window_ns(trace_set.ranks[0])
    assert end - begin == pytest.approx(2 * step_ns(DEFAULT.build()), rel=0.5)
    with pytest.raises(ValueError, match="lacks a step"):
        Stretch((10, 99)).host_window_ns(trace_set.ranks[0])


def test_without_marked_steps_nothing_is_predicted() -> None:
    trace_set = load(replace(DEFAULT, profiler_step=False).build())
    answer = what_if(trace_set, ["narrow=2"])
    assert not answer.replay.predicted
    assert answer.replay.reason == "no step is marked (ProfilerStep#)"
    assert answer.edits == []


def test_a_rank_without_a_whole_step_is_named() -> None:
    trace_set = load(DEFAULT.build())
    first, *others = trace_set.ranks
    lost = replace(first, steps=replace(first.steps, steps=()))
    answer = what_if(replace(trace_set, ranks=(lost, *others)), ["narrow=2"])
    assert answer.replay.reason == f"no analysed step was captured whole on rank {first.rank}"


def test_above_the_residual_limit_nothing_is_predicted() -> None:
    """A synchronising call that outlasts the device by 3 ms: nothing in the trace says why."""
    trace_set = load(replace(DEFAULT, sync_stall_ns=3 * MS).build())
    found = prepare(trace_set, activities(trace_set))
    assert isinstance(found, Unpredictable)
    assert found.residual is not None
    assert found.residual.share == pytest.approx(3 / 15.26, rel=0.02)
    assert found.residual.share > MAX_RESIDUAL_SHARE
    share = f"{found.residual.share:.1%}"
    assert f"a step differs by {share} from the measured one (limit 5%)" in found.reason
    assert what_if(trace_set, ["narrow=2"]).replay.residual_share == found.residual.share


def test_a_device_that_was_not_recorded_is_not_predicted() -> None:
    host = [step(at, at * MS, (at + 1) * MS) for at in range(3)]
    calls = [call("cudaLaunchKernel", at * MS + 10, at * MS + 20, at + 1) for at in range(3)]
    trace_set = assemble([recording(host, calls, backend="nccl", world_size=1)])
    found = prepare(trace_set, activities(trace_set))
    assert isinstance(found, Unpredictable)
    assert found.reason == "the device of some ranks was not recorded"
    assert found.residual is None


def test_an_edit_that_means_nothing_is_reported_and_the_others_still_apply() -> None:
    answer = what_if(load(WIDE_JOB.build()), ["balance", "narrow=2"])
    assert [row.not_applicable is None for row in answer.edits] == [False, True]
    assert answer.edits[1].speedup is not None
    assert answer.edits[1].speedup.expected > 1


def test_a_batch_says_what_it_gains_per_example() -> None:
    answer = what_if(load(WIDE_JOB.build()), ["batch=2"])
    (row,) = answer.edits
    assert row.per_example_factor == 2
    assert row.speedup is not None
    assert row.speedup.expected < 1


def test_a_wrong_edit_stops_everything() -> None:
    with pytest.raises(UsageError):
        what_if(load(DEFAULT.build()), ["narrow=2", "faster"])


def test_lost_kernels_do_not_stop_the_replay() -> None:
    trace_set = load(replace(DEFAULT, missing_kernels=frozenset({(1, 1, 2)})).build())
    found = prepare(trace_set, activities(trace_set))
    assert not isinstance(found, Unpredictable)
    # A step that lost a kernel is no longer left out: the other steps show what it was.
    assert [graph.steps for graph in found.graphs] == [(10, 11, 12, 13)]
    for graph in found.graphs:
        assert replay(graph) == pytest.approx(graph.nodes.measured_ns, abs=1)


def test_a_large_run_is_replayed_on_its_first_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    trace_set = load(DEFAULT.build())
    whole = prepare(trace_set, activities(trace_set))
    assert isinstance(whole, Prepared)
    (graph,) = whole.graphs
    assert len(graph.steps) > 2

    monkeypatch.setattr("traceinsight.replay.prepared.MAX_DEVICE_EVENTS", 1)
    part = prepare(trace_set, activities(trace_set))
    assert isinstance(part, Prepared)
    assert [one.steps for one in part.graphs] == [graph.steps[:2]]
    assert part.step_ns == pytest.approx(whole.step_ns, rel=0.01)  # the job's steps are alike


def test_sizes_that_cannot_be_give_no_prediction() -> None:
    # 2^48 rows of 2^25 values are 38 zettabytes: their replicas' sync would take years.
    nodes = [{"ranks": [0, 1]}, {"ranks": [2, 3]}]
    hardware = {"network": "ib_hdr"}
    tables = [{"name": "t", "rows": 2**48, "dim": 2**25}]
    manifest = {"nodes": nodes, "hardware": hardware, "tables": tables}
    answer = what_if(replace(load(DEFAULT.build()), manifest=manifest), ["2d=2", "narrow=2"])
    assert [row.step_ns is None for row in answer.edits] == [True, False]
    assert "would last for months" in (answer.edits[0].not_applicable or "")


def test_speedups_per_example_carry_the_growth_of_all_edits() -> None:
    # Twice the examples in the same step, then half the step: 2 times, then 2 times more of each example.
    def edit(name: str, speedup: float, cumulative: float, grown: float) -> PredictedEdit:
        alone, in_all = (Interval(low=one, expected=one, high=one) for one in (speedup, cumulative))
        step_ns = NanosecondRange(low=1, expected=1, high=1)
        return PredictedEdit(
            edit=name, step_ns=step_ns, speedup=alone, cumulative_speedup=in_all, per_example_factor=grown,
            not_applicable=None,
        )  # fmt: skip

    answer = what_if(load(DEFAULT.build()), ["batch=2", "no-straggler=9", "narrow=2"])
    batch, none, narrow = answer.speedups_per_example()
    assert none is None and batch is not None and narrow is not None
    assert batch[0] == batch[1]
    assert narrow[1] == pytest.approx(batch[1] * narrow[0])  # speedups multiply to the one in all
    made = structs.replace(answer, edits=[edit("batch=2", 1.0, 1.0, 2.0), edit("narrow=2", 2.0, 2.0, 1.0)])
    assert made.speedups_per_example() == [(2.0, 2.0), (2.0, 4.0)]
