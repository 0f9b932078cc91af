"""Scaling: answers by arithmetic on built jobs, sums that hold for any input, and what cannot be compared."""

import dataclasses
import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.builders import DEFAULT_COLLECTIVES, MS, POOLED_A2A, US, JobBuilder, Late, file_name
from tests.report.diagnoses import CASES, late_rank, partition_row
from traceinsight import api
from traceinsight.base.errors import UnreadableInputError, UsageError
from traceinsight.diagnosis import Diagnosis
from traceinsight.diagnosis.scaling import PARTS, Scaling, StepParts
from traceinsight.engine.scaling import MeasuredRun, measure, scale
from traceinsight.engine.scaling.measured import apportion
from traceinsight.report.scaling import build_scaling

STEP = 12_259 * US  # of the default job, see tests.builders


def run(folder: Path, builder: JobBuilder, **manifest: Any) -> Path:
    builder.build().write(folder)
    if manifest:
        (folder / "run.json").write_text(json.dumps(manifest))
    return folder


def longer(extra_ns: int) -> tuple[Any, ...]:
    """The default collectives with a longer exchange of vectors."""
    slow = type(POOLED_A2A)(**{**POOLED_A2A.__dict__, "transfer_ns": POOLED_A2A.transfer_ns + extra_ns})
    return tuple(slow if one is POOLED_A2A else one for one in DEFAULT_COLLECTIVES)


def compare(*paths: Path) -> Scaling:
    return api.scaling([str(path) for path in paths], workers=1)


def shares(parts: StepParts) -> dict[str, float]:
    return {part: parts.part_ns(part) / US for part in PARTS}


def test_a_longer_exchange_is_lost_to_transfer(tmp_path: Path) -> None:
    small = run(tmp_path / "a", JobBuilder(world_size=2))
    large = run(tmp_path / "b", JobBuilder(world_size=4, collectives=longer(3 * MS)))
    base, point = compare(small, large).points
    assert (base.world_size, base.step_ns, base.lost_ns, base.throughput_ratio) == (2, STEP, 0, 1.0)
    assert point.step_ns == STEP + 3 * MS
    assert point.lost_ns == 3 * MS
    assert point.efficiency == pytest.approx(12_259 / 15_259)
    assert point.throughput_ratio == pytest.approx(2 * 12_259 / 15_259)
    assert point.ideal == 2
    assert point.lost is not None
    assert point.lost.total_ns() == 3 * MS
    assert point.lost.transfer_ns == pytest.approx(3 * MS, abs=20 * US)  # shares are those of all windows


def test_a_late_rank_is_lost_to_waiting_and_its_own_compute(tmp_path: Path) -> None:
    small = run(tmp_path / "a", JobBuilder(world_size=2))
    late = Late(rank=1, ns=2 * MS, phases=("forward",))
    large = run(tmp_path / "b", JobBuilder(world_size=4, late=(late,)))
    point = compare(small, large).points[1]
    assert point.lost is not None
    # Rank 1 computes 2 ms longer, the other three wait so long: the mean over ranks is 0.5 and 1.5 ms.
    assert point.lost.compute_ns == pytest.approx(0.5 * MS, abs=20 * US)
    assert point.lost.wait_ns == pytest.approx(1.5 * MS, abs=20 * US)
    assert point.lost_ns == pytest.approx(2 * MS, abs=5 * US)


def test_longer_kernels_are_compute_and_a_stalled_host_is_idle(tmp_path: Path) -> None:
    small = run(tmp_path / "a", JobBuilder(world_size=1, collectives=(), sync_stall_ns=10 * US))
    slow = run(
        tmp_path / "b",
        JobBuilder(
            world_size=2, collectives=(), forward_ns=(3 * MS, 3 * MS), sync_stall_ns=1010 * US
        ),
    )  # fmt: skip
    point = compare(small, slow).points[1]
    assert point.lost is not None
    assert point.lost.compute_ns == pytest.approx(2 * MS, abs=20 * US)
    assert point.lost.idle_ns == pytest.approx(1 * MS, abs=20 * US)
    assert point.lost.transfer_ns == point.lost.wait_ns == point.lost.replica_sync_ns == 0


def test_replica_sync_is_told_from_other_transfer(tmp_path: Path) -> None:
    sync = type(POOLED_A2A)("allreduce", "backward", 2 * MS, 1000, "## dmp_collection_sync ##")
    small = run(tmp_path / "a", JobBuilder(world_size=2))
    large = run(tmp_path / "b", JobBuilder(world_size=4, collectives=(*longer(1 * MS), sync)))
    point = compare(small, large).points[1]
    assert point.lost is not None
    assert point.lost.replica_sync_ns == pytest.approx(2 * MS, abs=20 * US)
    # The all-reduce of the dense gradients ends before the sync on the same stream begins: its 500 us beside
    # backward are exposed now.
    assert point.lost.transfer_ns == pytest.approx(1.5 * MS, abs=20 * US)


def test_a_run_that_gets_slower_is_said_to(tmp_path: Path) -> None:
    small = run(tmp_path / "a", JobBuilder(world_size=2))
    # 2 ranks become 4 and the step 10 times as long: 0.2 times the throughput.
    large = run(tmp_path / "b", JobBuilder(world_size=4, collectives=longer(9 * STEP)))
    result = compare(large, small)  # the order of the arguments does not matter
    assert result.points[1].throughput_ratio == pytest.approx(0.2)
    assert "gets slower: 0.200x" in result.verdict
    assert "transfer" in result.verdict


def test_batches_count_when_they_are_known(tmp_path: Path) -> None:
    small = run(tmp_path / "a", JobBuilder(world_size=2), batch_per_rank=512, nodes=[{"node": 0}])
    large = run(tmp_path / "b", JobBuilder(world_size=4), batch_per_rank=1024)
    result = compare(small, large)
    base, point = result.points
    assert result.basis == "examples"
    assert base.examples_per_s == pytest.approx(2 * 512 / 12.259e-3)
    # Twice the ranks and twice the batch in the same step: four times the throughput, twice the ideal.
    assert point.throughput_ratio == pytest.approx(4)
    assert point.efficiency == pytest.approx(2)
    assert point.lost_ns == STEP - 2 * STEP
    assert point.lost is not None
    assert point.lost.total_ns() == -STEP
    assert "no step time is lost" in result.verdict
    assert (base.nodes, point.nodes) == (1, None)
    assert result.forecast == []
    assert "batch" in (result.no_forecast or "")
    assert "batch-differs" in {note.code for note in result.notes}


def test_without_batches_throughput_is_relative_and_that_is_said(tmp_path: Path) -> None:
    result = compare(
        run(tmp_path / "a", JobBuilder(world_size=2), batch_per_rank=512),
        run(tmp_path / "b", JobBuilder(world_size=4)),
    )
    assert result.basis == "steps"
    assert result.points[1].examples_per_s is None
    assert result.points[1].throughput_ratio == pytest.approx(2)
    assert [note.runs for note in result.notes if note.code == "batch-assumed"] == [[str(tmp_path / "b")]]


def test_a_run_whose_batch_cannot_be_assumed_is_left_out(tmp_path: Path) -> None:
    folders = [
        run(tmp_path / "a", JobBuilder(world_size=1), batch_per_rank=512),
        run(tmp_path / "b", JobBuilder(world_size=2), batch_per_rank=1024),
        run(tmp_path / "c", JobBuilder(world_size=4)),
    ]
    result = compare(*folders)
    assert [one.run for one in result.left_out] == [str(folders[2])]
    assert "batch_per_rank" in result.left_out[0].reason


def without_world(folder: Path, ranks: int) -> Path:
    """The traces without what says how many ranks there were."""
    for rank in range(ranks):
        path = folder / file_name(rank)
        document = json.loads(gzip.decompress(path.read_bytes()))
        del document["distributedInfo"]
        for event in document["traceEvents"]:
            for name in ("Group size", "Process Group Ranks"):
                event.get("args", {}).pop(name, None)
        path.write_bytes(gzip.compress(json.dumps(document).encode()))
    return folder


def test_a_single_process_that_never_communicates_is_one_rank(tmp_path: Path) -> None:
    alone = without_world(run(tmp_path / "a", JobBuilder(world_size=1, collectives=())), 1)
    result = compare(alone, run(tmp_path / "b", JobBuilder(world_size=4)))
    assert [point.world_size for point in result.points] == [1, 4]
    assert "without any communication" in " ".join(note.message for note in result.notes)


def test_an_unknown_world_size_is_never_guessed_and_may_be_written_down(tmp_path: Path) -> None:
    unknown = without_world(run(tmp_path / "a", JobBuilder(world_size=2)), 2)
    known = [run(tmp_path / name, JobBuilder(world_size=size)) for name, size in (("b", 3), ("c", 4))]
    result = compare(unknown, *known)
    assert [point.world_size for point in result.points] == [3, 4]
    assert "world_size" in result.left_out[0].reason
    with pytest.raises(UnreadableInputError, match="world size is not known"):
        compare(unknown, known[0])
    (unknown / "run.json").write_text('{"world_size": 2}')
    assert [point.world_size for point in compare(unknown, *known).points] == [2, 3, 4]


def test_missing_ranks_leave_communication_unsplit_and_are_noted(tmp_path: Path) -> None:
    small = run(tmp_path / "a", JobBuilder(world_size=2))
    large = JobBuilder(world_size=4, collectives=longer(3 * MS)).build().write(tmp_path / "b", ranks=[0, 2])
    result = compare(small, large)
    point = result.points[1]
    assert (point.world_size, point.ranks_read) == (4, 2)
    assert point.lost is not None
    # 100 + 3000 us of the exchange, 30 and 100 us of the others, none of which is transfer any more.
    assert point.lost.unsplit_ns == pytest.approx(3_230 * US, abs=30 * US)
    assert point.lost.transfer_ns == pytest.approx(-230 * US, abs=30 * US)
    assert "missing-ranks" in {note.code for note in result.notes}


def test_steps_that_could_not_be_split_are_left_out_of_the_cut_unless_they_are_the_most() -> None:
    def parts(unsplit_steps: int) -> StepParts:
        rows = []
        for step in range(4):
            hidden = 30 * MS if step < unsplit_steps else 0
            row = partition_row(0, step)
            rows.append(
                replace(
                    row, exposed_comm_unsplit_ns=hidden, exposed_comm_transfer_ns=0, exposed_comm_wait_ns=0,
                    compute_ns=100 * MS, exposed_copy_ns=0, idle_ns=100 * MS - hidden, window_ns=200 * MS,
                )
            )  # fmt: skip
        run = replace(late_rank().run, missing_ranks=[])
        found = measure("run", replace(late_rank(), partition=rows, phases=[], run=run), None).parts
        assert found is not None
        return found

    assert parts(2).unsplit_ns == 0  # two of four steps are split, and they are cut
    assert parts(3).unsplit_ns == 22_500_000  # 3 x 30 of 4 x 200 ms


def test_two_runs_of_one_size_are_refused_by_name(tmp_path: Path) -> None:
    folders = [run(tmp_path / name, JobBuilder(world_size=2)) for name in ("first", "second")]
    with pytest.raises(UsageError, match="2 runs have 2 ranks") as error:
        compare(*folders)
    assert all(str(folder) in str(error.value) for folder in folders)


def test_a_folder_of_several_runs_gives_its_newest_and_says_so(tmp_path: Path) -> None:
    for name, size in (("a", 2), ("b", 4)):
        run(tmp_path / "many" / name, JobBuilder(world_size=size))
    result = compare(tmp_path / "many", run(tmp_path / "c", JobBuilder(world_size=8, steps=3)))
    assert "several-runs" in {note.code for note in result.notes}


def test_one_run_is_no_comparison(tmp_path: Path) -> None:
    for paths in ([], [tmp_path / "never_read"]):
        with pytest.raises(UsageError, match="several world sizes"):
            api.scaling(paths)


# Any numbers ---------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=9).filter(any), st.integers(0, 10**15))
def test_apportioned_parts_sum_and_are_the_nearest_whole_numbers(weights: list[int], total: int) -> None:
    parts = apportion(weights, total)
    assert sum(parts) == total
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part - weight * total / sum(weights)) <= 1 + total * 1e-12


def measured(world: int, batch: int | None, parts: list[int], device: str = "GPU") -> MeasuredRun:
    return MeasuredRun(
        name=f"{world}", world_size=world, nodes=None, batch_per_rank=batch, ranks_read=world, steps=3,
        device=device, simulated=False, step_ns=sum(parts), settings={}, notes=(),
        parts=StepParts(**{f"{part}_ns": ns for part, ns in zip(PARTS, parts, strict=True)}),
    )  # fmt: skip


PART_TIMES = st.lists(st.integers(0, 10**12), min_size=7, max_size=7).filter(any)


@given(
    st.dictionaries(
        st.integers(1, 10**6), st.tuples(st.integers(1, 10**6), PART_TIMES), min_size=2, max_size=6
    )
)
def test_the_lost_parts_sum_to_the_loss_for_any_runs(runs: dict[int, tuple[int, list[int]]]) -> None:
    result = scale([measured(world, *facts) for world, facts in runs.items()], version="0")
    base = result.points[0]
    for point in result.points:
        assert point.parts is not None
        assert point.lost is not None
        assert point.parts.total_ns() == point.step_ns
        assert point.lost.total_ns() == point.lost_ns == point.step_ns - point.ideal_step_ns
        assert point.throughput_ratio == pytest.approx(point.ideal * point.efficiency)
        rates = [one.world_size * (one.batch_per_rank or 0) / one.step_ns for one in (point, base)]
        assert point.throughput_ratio == pytest.approx(rates[0] / rates[1])
    assert set(base.lost.__struct_fields__ if base.lost else ()) == {f"{part}_ns" for part in PARTS}
    assert base.lost_ns == 0
    assert base.lost is not None
    assert {base.lost.part_ns(part) for part in PARTS} == {0}
    for one in result.forecast:
        for estimate in (one.step_ns, one.throughput_ratio, one.efficiency):
            assert 0 < estimate.expected < math.inf
            if estimate.low is not None and estimate.high is not None:
                assert 0 < estimate.low <= estimate.expected <= estimate.high


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 10**9), st.integers(0, 10**9)), min_size=1))
def test_a_measured_step_is_cut_like_its_windows(rows: list[tuple[int, int, int]]) -> None:
    windows = [
        replace(
            partition_row(rank, step), window_ns=compute + idle, compute_ns=compute, idle_ns=idle,
            exposed_comm_transfer_ns=0, exposed_comm_wait_ns=0, exposed_comm_unsplit_ns=0, exposed_copy_ns=0,
        )
        for step, (rank, compute, idle) in enumerate(rows)
    ]  # fmt: skip
    found = measure("run", replace(late_rank(), partition=windows, phases=[]), None)
    if found.parts is None:
        return
    assert found.step_ns == found.parts.compute_ns + found.parts.idle_ns
    whole = sum(row.window_ns for row in windows)
    share = sum(row.compute_ns for row in windows) / whole
    assert found.parts.compute_ns == pytest.approx(share * found.step_ns, abs=1)


HOSTILE: list[dict[str, Any]] = [
    {"batch_per_rank": value, "world_size": value, "nodes": value, "versions": value, "qcomms": value}
    for value in (None, True, -1, 0, 10**400, 1.5, "8", [], {}, [[[]]], {"a": {}}, "\x1b[31m")
]


@pytest.mark.parametrize("manifest", HOSTILE, ids=range(len(HOSTILE)))
@pytest.mark.parametrize("case", CASES)
def test_a_hostile_manifest_changes_no_number(case: str, manifest: dict[str, Any]) -> None:
    diagnosis: Diagnosis = CASES[case]()
    found, plain = measure("run", diagnosis, manifest), measure("run", diagnosis, None)
    assert found.batch_per_rank is None
    assert found.nodes is None or isinstance(manifest["nodes"], list)
    assert (found.world_size, found.step_ns, found.parts) == (plain.world_size, plain.step_ns, plain.parts)


# Runs that differ ----------------------------------------------------------------------------------

TIMES = [[10 * MS, 0, 0, 0, 0, 0, 0], [10 * MS, MS, 0, 0, 0, 0, 0], [10 * MS, 2 * MS, 0, 0, 0, 0, 0]]


def test_runs_on_other_devices_are_noted_and_not_forecast() -> None:
    result = scale([measured(8, None, TIMES[0]), measured(16, None, TIMES[1], "other")], version="0")
    assert "device-differs" in {note.code for note in result.notes}
    assert result.no_forecast == "the runs used different devices"
    assert result.model is None


def test_simulated_and_measured_runs_are_noted_and_not_forecast() -> None:

    real, other = measured(8, None, TIMES[0]), measured(16, None, TIMES[1])
    result = scale([real, dataclasses.replace(other, simulated=True)], version="0")
    assert "origin-differs" in {note.code for note in result.notes}
    assert result.forecast == []


@pytest.mark.parametrize(("step_ms", "noted"), [(9.2, False), (9.0, True)])
def test_a_run_much_better_than_ideal_is_doubted(step_ms: float, noted: bool) -> None:
    # Efficiency 10 / 9.2 = 1.087 and 10 / 9.0 = 1.111; the limit is 1.1.
    faster = measured(16, 64, [round(step_ms * MS), 0, 0, 0, 0, 0, 0])
    result = scale([measured(8, 64, TIMES[0]), faster], version="0")
    assert [note.runs for note in result.notes if note.code == "beyond-ideal"] == [["16"]] * noted


def test_runs_that_differ_in_more_than_size_are_noted() -> None:

    runs = [measured(8, 64, TIMES[0]), measured(16, 64, TIMES[1]), measured(32, 64, TIMES[2])]
    kinds = [{"qcomms": {"forward": "fp32"}}, {"qcomms": {"forward": "fp8"}}, {}]
    result = scale(
        [dataclasses.replace(run, settings=kind) for run, kind in zip(runs, kinds, strict=True)], version="0"
    )
    (note,) = [note for note in result.notes if note.code == "settings-differ"]
    assert "qcomms" in note.message
    assert len(result.forecast) == 2  # it is still the same job on the same devices


# Forecast ------------------------------------------------------------------------------------------


def sizes(*lost_ms: float) -> Scaling:
    """Runs of 8, 16, 32, ... ranks with a step of 10 ms and this much lost."""
    runs = [
        measured(8 * 2**at, 64, [10 * MS, round(lost * MS), 0, 0, 0, 0, 0]) for at, lost in enumerate(lost_ms)
    ]
    return scale(runs, version="0")


@pytest.mark.parametrize(
    ("lost_ms", "shape", "ahead_ms"),
    [
        ((0, 1, 3), "linear", (7, 15)),  # 1 ms x (m - 1): 8 and 16 times the base
        ((0, 1, 2), "logarithmic", (3, 4)),  # 1 ms x log2(m)
        ((0, 2, 3), "saturating", (3.5, 3.75)),  # 4 ms x (1 - 1/m)
    ],
)
def test_each_growth_is_recognised_and_continued(
    lost_ms: tuple[float, ...], shape: str, ahead_ms: tuple[float, ...]
) -> None:
    result = sizes(*lost_ms)
    assert result.model is not None
    assert (result.model.shape, result.model.fitted_runs) == (shape, 2)
    assert [one.world_size for one in result.forecast] == [64, 128]
    for one, lost in zip(result.forecast, ahead_ms, strict=True):
        assert one.step_ns.expected == pytest.approx((10 + lost) * MS)
        assert one.efficiency.expected == pytest.approx(10 / (10 + lost))
        assert one.throughput_ratio.expected == pytest.approx(one.ideal * 10 / (10 + lost))
        assert one.examples_per_s is not None
        assert one.examples_per_s.expected == pytest.approx(64 * one.world_size / ((10 + lost) * 1e-3))


def test_three_runs_that_fit_exactly_still_leave_a_wide_interval() -> None:
    step = sizes(0, 1, 3).forecast[1].step_ns
    # Of 16 times the base: least squares of log2(m) through (1, 1) and (2, 3) gives 1.4 x 4 = 5.6 ms, of
    # m (m - 1) through (2, 1) and (12, 3) gives 38 / 148 x 240 = 61.6 ms.
    assert step.low == pytest.approx(15.6 * MS)
    assert step.high == pytest.approx((10 + 38 / 148 * 240) * MS)


def test_what_the_fit_leaves_widens_the_interval() -> None:
    # Losses 1.2 and 1.9 ms at m = 2 and 4. Of 1 - 1/m = 0.5 and 0.75, squares 0.8125, the growth is
    # (0.5 x 1.2 + 0.75 x 1.9) / 0.8125; one degree of freedom is left, whose t is 6.314.
    growth = 2.025 / 0.8125
    residual = math.hypot(1.2 - 0.5 * growth, 1.9 - 0.75 * growth)
    expected = 10 + growth * 0.875  # m = 8
    half = 6.314 * residual * math.sqrt(1 + 0.875**2 / 0.8125)
    result = sizes(0, 1.2, 1.9)
    assert result.model is not None
    assert result.model.residual_ns == pytest.approx(residual * MS, abs=1)
    step = result.forecast[0].step_ns
    assert step.expected == pytest.approx(expected * MS)
    assert step.low == pytest.approx((expected - half) * MS)  # nothing grows more slowly than this shape


def test_two_runs_give_a_forecast_without_an_interval() -> None:
    result = sizes(0, 2)
    assert result.model is not None
    assert result.model.residual_ns is None
    first = result.forecast[0]
    assert first.step_ns.expected == pytest.approx(14 * MS)  # 2 ms with every doubling
    assert (first.step_ns.low, first.step_ns.high) == (None, None)


def test_no_size_is_forecast_to_be_more_efficient_than_the_best_that_ran() -> None:
    for one in sizes(0, -2, -6).forecast:
        assert one.step_ns.expected >= 4 * MS
        assert one.efficiency.high is not None
        assert one.efficiency.high <= 10 / 4


def test_the_first_sentence_says_most_only_of_most() -> None:
    # Of 3 ms lost 1.2 ms are transfer, 1 ms is idle and 0.8 ms is compute: no part makes up half of it.
    base = made_run("a", 2, StepParts(**{f"{part}_ns": 2 * MS for part in PARTS}))
    lost = {"compute": 800 * US, "transfer": 1200 * US, "idle": 1 * MS}
    even = StepParts(**{f"{part}_ns": 2 * MS + lost.get(part, 0) for part in PARTS})
    assert (
        "the largest part of it to transfer (1.20 ms)"
        in scale([base, made_run("b", 4, even)], version="1").verdict
    )
    most = StepParts(**{f"{part}_ns": 2 * MS + (3 * MS if part == "wait" else 0) for part in PARTS})
    said = scale([base, made_run("b", 4, most)], version="1").verdict
    assert "most of it to waiting for late peers (3.00 ms)" in said


def made_run(name: str, world_size: int, parts: StepParts, **changes: Any) -> MeasuredRun:
    own = MeasuredRun(
        name=name, world_size=world_size, nodes=None, batch_per_rank=None, ranks_read=world_size, steps=5,
        device="GPU", simulated=False, step_ns=parts.total_ns(), parts=parts, settings={}, notes=(),
    )  # fmt: skip
    return dataclasses.replace(own, **changes)


@pytest.mark.parametrize(
    ("device", "warned"), [("GPU", ""), ("CPU", " But: 1 warning about these runs (below).")]
)
def test_the_second_line_points_to_warnings_below(device: str, warned: str) -> None:
    parts = StepParts(**{f"{part}_ns": 2 * MS for part in PARTS})
    found = scale([made_run("a", 2, parts), made_run("b", 4, parts, device=device)], version="1")
    assert build_scaling(found).basis == f"Rests on 2 runs of 2 to 4 ranks.{warned}"


@pytest.mark.parametrize("source", ["whole recording", "none"])
def test_a_recording_without_marked_steps_is_no_step(source: str) -> None:
    # Its one window holds as many steps as happened to be recorded: no number can be made of it.
    own = late_rank()
    blind = replace(own, run=replace(own.run, step_source=source))
    assert measure("a", own, None).step_ns is not None
    unmarked = measure("b", blind, {"world_size": 16})
    assert unmarked.step_ns is None
    assert unmarked.parts is None
    parts = StepParts(**{f"{part}_ns": 2 * MS for part in PARTS})
    found = scale([unmarked, made_run("a", 2, parts), made_run("c", 4, parts)], version="1")
    assert [(one.run, "profiler.step()" in one.reason) for one in found.left_out] == [("b", True)]


@pytest.mark.parametrize(("ns", "forecast"), [(1 * MS, True), (800 * US, False)])
def test_no_forecast_from_a_run_that_is_much_better_than_ideal(ns: int, forecast: bool) -> None:
    parts = StepParts(**{f"{part}_ns": 1 * MS for part in PARTS})
    quick = StepParts(**{f"{part}_ns": ns for part in PARTS})  # 1 / 0.8: 125 % of ideal
    found = scale([made_run("a", 2, parts), made_run("b", 4, quick)], version="1")
    assert bool(found.forecast) == forecast
    assert ("beyond 110.0% of ideal" in (found.no_forecast or "")) == (not forecast)


@pytest.mark.parametrize("value", [-5, 0, 1.5, "many", 2**60])
def test_a_number_in_the_manifest_that_cannot_be_is_named(tmp_path: Path, value: object) -> None:
    small = run(tmp_path / "a", JobBuilder(world_size=2), batch_per_rank=value, world_size=value)
    large = run(tmp_path / "b", JobBuilder(world_size=4))
    notes = [note for note in compare(small, large).notes if note.code == "unusable-manifest"]
    assert [(note.severity, note.runs) for note in notes] == [("warning", [str(small)])] * 2
    assert [note.message for note in notes] == [
        f"run.json gives {value!r} for {field}, which cannot be; not used."
        for field in ("world_size", "batch_per_rank")
    ]
