"""The measuring instruments against each other: builder, oracle, and the facts of the corpus README."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.builders import COMM_STREAM, MS, US, JobBuilder, Late, file_name
from tests.oracles import RawTrace, device_windows, forward_communication, meetings, partition, union_length
from tests.strategies import jobs


def test_a_default_step_takes_what_the_builder_promises() -> None:
    job = JobBuilder().build()
    parts = {"compute": 12 * MS, "transfer": 230 * US, "wait": 0, "copy": 20 * US, "idle": 9 * US}
    for rank in range(4):
        for step in job.closed_steps:
            assert job.partition(rank, step) == parts | {"window": 12_259 * US}


def test_a_late_rank_makes_the_others_wait() -> None:
    # 2 ms and the gap before the extra kernel, three times per step.
    job = JobBuilder(late=(Late(1, 2 * MS),)).build()
    assert [job.partition(rank, 11)["wait"] for rank in range(4)] == [6003 * US, 0, 6003 * US, 6003 * US]
    (pooled,) = [c for c in job.collectives if c.step == 11 and c.spec.phase == "forward"]
    assert [pooled.wait(rank) for rank in range(4)] == [2001 * US, 0, 2001 * US, 2001 * US]


def test_a_missing_kernel_is_missing_once() -> None:
    whole = JobBuilder().build()
    torn = JobBuilder(missing_kernels=frozenset({(2, 1, 1)})).build()
    counts = [len(RawTrace(job.document(2)).communication()) for job in (whole, torn)]
    assert counts == [16, 15]
    assert torn.text(1) == whole.text(1)


def test_a_clock_ahead_moves_every_stamp_of_that_rank_only() -> None:
    plain, ahead = JobBuilder().build(), JobBuilder(clock_ahead_ns={1: 5 * MS}).build()
    moved = [RawTrace(job.document(1)).gpu for job in (plain, ahead)]
    assert {b.start - a.start for a, b in zip(*moved, strict=True)} == {5 * MS}
    assert plain.text(0) == ahead.text(0)


def test_building_is_deterministic(tmp_path: Path) -> None:
    knobs = JobBuilder(jitter_ns=50 * US, seed=3)
    folders = [knobs.build().write(tmp_path / name) for name in "ab"]
    assert len({(folder / file_name(2)).read_bytes() for folder in folders}) == 1


def test_a_cpu_job_has_no_device_events_and_waits_on_gloo() -> None:
    job = JobBuilder(gpu=False, late=(Late(1, 2 * MS),)).build()
    assert RawTrace(job.document(0)).gpu == []
    lengths = {e.end - e.start for e in job.host[0] if e.name == "gloo:all_to_all"}
    assert lengths == {2 * MS + 30 * US, 2 * MS + 100 * US}


@given(knobs=jobs())
@settings(max_examples=50, deadline=None, derandomize=True, database=None)
def test_the_sweep_finds_what_the_builder_did(knobs: JobBuilder) -> None:
    job = knobs.build()
    for rank in range(knobs.world_size):
        trace = RawTrace(job.document(rank))
        windows = device_windows(trace)
        assert sorted(windows) == job.closed_steps
        for step, window in windows.items():
            built, swept = job.partition(rank, step), partition(trace, window)
            assert swept["compute"] == built["compute"]
            assert swept["comm"] == built["transfer"] + built["wait"]
            assert swept["copy"] == built["copy"]
            assert swept["idle"] == built["idle"]
        spans = [(f.span, f.comm) for f in forward_communication(trace)]
        assert spans == [job.forward(rank, step) for step in job.steps]


@given(knobs=jobs())
@settings(max_examples=30, deadline=None, derandomize=True, database=None)
def test_a_collective_ends_for_all_when_the_last_has_come(knobs: JobBuilder) -> None:
    job = knobs.build()
    for rank, works in job.device.items():
        for work in works:
            if work.stream == COMM_STREAM:
                truth = job.collectives[work.collective or 0]
                assert work.start == truth.starts[rank]
                assert work.end == truth.last_arrival + truth.spec.transfer_ns
                assert truth.wait(rank) >= 0


@given(spans=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=12))
@settings(derandomize=True, database=None)
def test_union_length_counts_covered_ticks(spans: list[tuple[int, int]]) -> None:
    intervals = [(start, start + length) for start, length in spans]
    ticks = {tick for start, end in intervals for tick in range(start, end)}
    assert union_length(intervals) == len(ticks)


@pytest.mark.corpus
class TestFactsOfTheCorpusReadme:
    def test_dlrm(self, corpus: Path) -> None:
        traces = [RawTrace.read(p) for p in (corpus / "dlrm_v100_8rank").iterdir()]
        shares = {t.rank: round(100 * forward_communication(t)[0].share, 1) for t in traces}
        known = (50.4, 78.5, 16.4, 71.6, 70.7, 69.2, 16.4, 0.3)
        assert all(shares[rank] == pytest.approx(known[rank], abs=0.1) for rank in range(8))
        met = meetings(traces, tolerance=20_000)
        assert len(met) == 8
        assert max(m.end_spread for m in met) <= 7_000
        assert max(m.wait(rank) for m in met for rank in range(8)) == 7_624_000

    @pytest.mark.parametrize(
        ("folder", "steps_ms"),
        [
            ("sst_sleep_pl_dense_after_backward_2", [1056, 1173, 1055]),
            ("sst_long_a2a_optimizer_4", [397, 139, 144]),
            ("sst_long_a2a_optimizer_qcomm_trace", [153, 408, 128]),
        ],
    )
    def test_torchrec_steps_and_the_late_rank(self, corpus: Path, folder: str, steps_ms: list[int]) -> None:
        traces = {
            t.rank: t for t in (RawTrace.read(p) for p in (corpus / "torchrec_v100_4rank" / folder).iterdir())
        }
        assert [round((s.end - s.start) / 1e6) for s in traces[0].steps] == steps_ms
        busy = {rank: sum(k.end - k.start for k in t.communication()) for rank, t in traces.items()}
        assert min(busy, key=lambda rank: busy[rank]) == 2

    def test_sleep_ends_agree_within_72_us(self, corpus: Path) -> None:
        folder = corpus / "torchrec_v100_4rank" / "sst_sleep_pl_dense_after_backward_2"
        met = meetings([RawTrace.read(p) for p in folder.iterdir()], tolerance=100_000)
        assert sorted(len(m.members) for m in met) == [3] + [4] * 12
        assert max(m.end_spread for m in met) <= 72_000


def test_an_oracle_can_tell_a_wrong_partition() -> None:
    """A check of the check: a kernel moved by 1 ns changes the sweep."""
    document: dict[str, Any] = JobBuilder().build().document(0)
    window = device_windows(RawTrace(document))[11]
    before = partition(RawTrace(document), window)
    kernel = next(e for e in document["traceEvents"] if e.get("cat") == "kernel" and e["ts"] > 30_000)
    kernel["dur"] = round(kernel["dur"] - 0.001, 3)
    assert partition(RawTrace(document), window) != before
