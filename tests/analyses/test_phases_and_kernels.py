"""Phases by launch and host time, and device time by kernel family."""

from collections.abc import Callable

import pytest

from tests.analyses.trace_sets import one_rank
from tests.builders import Job, JobBuilder, Late
from tests.trace.recordings import ALL_TO_ALL, GEMM, MS, US, copy, kernel, launched, mark, step
from traceinsight.analyses.kernels import kernel_families
from traceinsight.analyses.phases import phases
from traceinsight.diagnosis import Diagnosis, PhaseRow
from traceinsight.trace.activity import activities

LOOKUP = "void fbgemm_gpu::split_embedding_codegen_forward_unweighted_kernel<float>()"


def by_phase(*rows: object) -> dict[str, PhaseRow]:
    trace_set = one_rank(step(0, 0, MS), step(1, MS, 2 * MS), rows)
    return {row.phase: row for row in phases(trace_set, activities(trace_set)) if row.step == 0}


def test_device_work_belongs_to_the_phase_that_launched_it() -> None:
    found = by_phase(
        mark("## copy_batch_to_gpu 3 ##", 0, 10 * US),
        mark("## forward ##", 10 * US, 40 * US),
        mark("## backward ##", 40 * US, 100 * US),
        launched(copy("Memcpy HtoD", 50 * US, 80 * US, 1), 5 * US),
        launched(kernel(GEMM, 80 * US, 180 * US, 2), 20 * US),
        launched(kernel(ALL_TO_ALL, 150 * US, 250 * US, 3, stream=20), 30 * US),
        # Launched by backward while forward's work still runs.
        launched(kernel(GEMM, 300 * US, 420 * US, 4), 50 * US),
    )
    assert set(found) == {"input", "forward", "backward"}
    assert found["input"].copy_ns == 30 * US
    assert found["forward"].compute_ns == 100 * US
    assert found["forward"].comm_ns == 100 * US
    assert found["forward"].exposed_comm_ns == 70 * US  # 150-180 lies under compute
    assert found["backward"].compute_ns == 120 * US
    assert [found[one].host_ns // US for one in ("input", "forward", "backward")] == [10, 30, 60]


def test_host_time_goes_to_the_innermost_phase() -> None:
    found = by_phase(
        # In old TorchRec versions waiting for the sparse data lies inside forward.
        mark("## forward ##", 0, 100 * US),
        mark("## wait_sparse_data_dist ##", 10 * US, 30 * US),
        mark("## encoder fp8 None ##", 50 * US, 60 * US),  # says nothing: stays forward's
        launched(kernel(GEMM, 200 * US, 210 * US, 1), 20 * US),
        launched(kernel(LOOKUP, 210 * US, 240 * US, 2), 55 * US),
    )
    assert found["forward"].host_ns == 80 * US
    assert found["sparse_data_dist"].host_ns == 20 * US
    assert found["sparse_data_dist"].compute_ns == 10 * US
    assert found["forward"].compute_ns == 30 * US


def test_another_thread_is_in_the_phase_of_the_main_thread() -> None:
    found = by_phase(
        mark("## backward ##", 0, 100 * US),
        launched(kernel(GEMM, 200 * US, 260 * US, 1), 50 * US, lane="autograd"),
    )
    assert found["backward"].compute_ns == 60 * US


def test_work_that_nothing_names_is_other() -> None:
    found = by_phase(launched(kernel(GEMM, 200 * US, 260 * US, 1), 50 * US))
    assert set(found) == {"other"}


def test_work_launched_before_the_recording_is_in_no_phase() -> None:
    # The device still runs the step before while the host exchanges the next batch's ids.
    found = by_phase(
        mark("## copy_batch_to_gpu 3 ##", 0, 10 * US),
        mark("## start_sparse_data_dist ##", 10 * US, 900 * US),
        launched(copy("Memcpy HtoD", 20 * US, 30 * US, 4), 5 * US),
        kernel(GEMM, 100 * US, 160 * US, 1),
        kernel(ALL_TO_ALL, 160 * US, 200 * US, 2, stream=20),
        launched(kernel(GEMM, 300 * US, 420 * US, 3), 50 * US),
    )
    assert found["other"].compute_ns == 60 * US
    assert found["other"].comm_ns == 40 * US
    assert found["sparse_data_dist"].compute_ns == 120 * US
    assert found["sparse_data_dist"].comm_ns == 0


def test_kernel_families_sum_durations_over_streams() -> None:
    # Two steps. Per step: GEMM 2 x 100 us, lookup 300 us, exchange 400 us, copy 200 us: 1100 us in all,
    # although some run side by side.
    rows = []
    for number in range(2):
        begin, key = MS + 2 * MS * number, 10 * number
        rows += [
            step(number, begin, begin + 2 * MS),
            launched(kernel(GEMM, begin + 20 * US, begin + 120 * US, key + 1), begin),
            launched(kernel(GEMM, begin + 120 * US, begin + 220 * US, key + 2), begin + US),
            launched(kernel(LOOKUP, begin + 220 * US, begin + 520 * US, key + 3), begin + 2 * US),
            launched(kernel(ALL_TO_ALL, begin + 100 * US, begin + 500 * US, key + 4, 20), begin + 3 * US),
            launched(copy("Memcpy HtoD", begin + 520 * US, begin + 720 * US, key + 5), begin + 4 * US),
        ]
    families = {row.family: row for row in kernel_families(one_rank(rows))}
    assert list(families) == ["communication", "embedding", "copy", "gemm"]  # 400, 300, then 200 by name
    assert families["gemm"].busy_ns == 200 * US
    assert families["gemm"].count_per_step == 2.0
    assert families["gemm"].top_kernels == [GEMM]
    assert families["communication"].share == pytest.approx(400 / 1100)
    assert sum(row.share for row in families.values()) == pytest.approx(1.0)


def test_a_cpu_rank_has_no_kernel_table() -> None:
    assert kernel_families(one_rank(step(0, 0, MS))) == []


def test_exposed_transfer_of_a_phase_leaves_out_waiting(diagnose_job: Callable[[Job], Diagnosis]) -> None:
    # Rank 1 reaches the exchange of forward 1 ms late; the exchange itself takes 100 us on every rank.
    late = Late(rank=1, ns=MS, phases=("forward",))
    rows = diagnose_job(JobBuilder(world_size=2, late=(late,)).build()).phases
    forward = {row.rank: row for row in rows if row.phase == "forward" and row.step == 11}
    assert [forward[rank].exposed_transfer_ns for rank in (0, 1)] == [100 * US, 100 * US]
    assert forward[1].exposed_comm_ns == 100 * US
    assert forward[0].exposed_comm_ns - 100 * US == pytest.approx(MS, abs=2 * US)  # a kernel gap more or less
