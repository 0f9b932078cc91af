"""Predictions of a run whose profiler lost kernels, against simulations of the change."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.disturb import losing, without_events, without_ranks
from traceinsight import api
from traceinsight.replay.edits.registry import parse_edit
from traceinsight.replay.lost_kernels import lost_of, with_lost_kernels
from traceinsight.replay.predict import Bench
from traceinsight.replay.prepared import Prepared, Unpredictable, prepare
from traceinsight.simulate import decode_spec, simulate, write_run
from traceinsight.trace.activity import activities
from traceinsight.trace.assemble import assemble
from traceinsight.trace.recording import GPU_WORK, Recording
from traceinsight.trace.trace_set import TraceSet

WORST = 0.08
LATE = 2
FIELDS: dict[str, Any] = {
    "name": "lossy",
    "batch_per_rank": 1024,
    "jitter": 0.01,
    "cluster": {"nodes": 2, "gpus_per_node": 2, "gpu": "A100", "network": "tcp_100g", "clock_skew_ms": 5.0},
    "tables": {"wide": {"count": 8, "rows": 1_000_000, "dim": 256, "mean_ids": 10}},
    "dense": {"forward_gflop": 4, "kernels": 16, "small_kernels": 60, "parameters": 10_000_000},
    "stragglers": [{"rank": LATE, "compute_ms": 25.0}],
    "capture": {"steps": 5},
}
CHANGES: dict[str, dict[str, Any]] = {
    "network=efa_p5": {"cluster": FIELDS["cluster"] | {"network": "efa_p5"}},
    f"no-straggler={LATE}": {"stragglers": []},
}


@dataclass(frozen=True)
class Job:
    recordings: list[Recording]
    truth_ns: Mapping[str, float]  # step time by simulation with each change


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("lossy") / "run"
    write_run(simulate(decode_spec(FIELDS)), folder)
    loaded: TraceSet = api.load(folder).trace_set
    truth = {
        edit: float(simulate(decode_spec(FIELDS | change)).truth.step_ns) for edit, change in CHANGES.items()
    }
    return Job([trace.recording for trace in loaded.ranks], truth)


def lossy(job: Job, share: float, seed: int) -> list[Recording]:
    return losing(job.recordings, seed, dict.fromkeys(range(len(job.recordings)), share))


def assert_right(recordings: list[Recording], truth_ns: Mapping[str, float]) -> Prepared:
    trace_set = assemble(recordings)
    found = prepare(trace_set, activities(trace_set))
    assert isinstance(found, Prepared), found.reason
    bench = Bench(found)
    for edit, true_ns in truth_ns.items():
        said = bench.predict([parse_edit(edit)])
        near = abs(said.expected_ns / true_ns - 1) <= WORST
        assert near or said.low_ns <= true_ns <= said.high_ns, (edit, said, true_ns)
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("share", [0.0, 0.01, 0.03])
def test_predictions_of_a_run_that_lost_kernels_are_right(job: Job, share: float, seed: int) -> None:
    found = assert_right(lossy(job, share, seed), job.truth_ns)
    assert found.lost.guessed_share == pytest.approx(share, abs=share / 2)
    assert found.lost.lacking == 0


@pytest.mark.parametrize("seed", range(2))
def test_lost_kernels_beside_a_missing_rank(job: Job, seed: int) -> None:
    truth = {f"no-straggler={LATE}": job.truth_ns[f"no-straggler={LATE}"]}
    assert_right(without_ranks(lossy(job, 0.02, seed), 3), truth)


def test_what_is_given_back_is_what_was_lost(job: Job) -> None:
    """Every kernel launched in the capture comes back under its own launch, name and stream, at its time."""
    given = with_lost_kernels(assemble(lossy(job, 0.02, 7)))
    count = 0
    for trace, true in zip(given.ranks, job.recordings, strict=True):
        events, real = trace.recording.events, true.events
        of = {int(real.correlation[one]): one for one in true.of_kind(*GPU_WORK).tolist()}
        for one in trace.guessed.tolist():
            whole = of[int(events.correlation[one])]
            assert trace.recording.name_of(one) == true.name_of(whole)
            assert events.lane[one] == real.lane[whole]
            assert abs(int(events.start_ns[one] - real.start_ns[whole])) < 1_000_000
            count += 1
        assert max(trace.lost_shares) == 0
    assert count > 0


def test_a_run_that_lost_nothing_stays_as_it_is(job: Job) -> None:
    trace_set = assemble(job.recordings)
    assert with_lost_kernels(trace_set) is trace_set


def test_with_too_much_lost_nothing_is_predicted(job: Job) -> None:
    trace_set = assemble(lossy(job, 0.15, 1))
    found = prepare(trace_set, activities(trace_set))
    assert isinstance(found, Unpredictable)
    assert found.reason.startswith("kernels were lost: 1")
    assert found.reason.endswith("of the device work of the replayed steps (limit 5%); capture again")


def test_collectives_that_lack_a_rank_are_named(job: Job) -> None:
    """Of a kernel that is lost in every step no other step tells anything: it stays lost."""
    trace = assemble(job.recordings).ranks[1]
    longest = max(trace.collectives, key=lambda one: one.end_ns - one.start_ns)
    gone = [one.event for one in trace.collectives if one.label == longest.label]
    recordings = [one if one.rank != 1 else without_events(one, gone) for one in job.recordings]
    trace_set = assemble(recordings)
    lost = lost_of(with_lost_kernels(trace_set), trace_set.steps)
    assert lost.lacking >= len(trace_set.steps)
    found = prepare(trace_set, activities(trace_set))
    assert isinstance(found, Unpredictable)
    assert found.reason == (
        f"kernels were lost: {lost.lacking} of {lost.collectives} collectives of the replayed steps "
        "lack a rank; capture again"
    )
