"""The partition of GPU time: exact sums everywhere, and equality with a brute-force sweep."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.acceptance.reading import assert_partition_adds_up, by_rank_and_step, exposed_comm
from tests.builders import JobBuilder
from tests.oracles import RawTrace, device_windows, partition
from tests.strategies import jobs

EVERY_SET = (
    "dlrm_v100_8rank",
    "torchrec_v100_4rank/sst_sleep_pl_dense_after_backward_2",
    "torchrec_v100_4rank/sst_long_a2a_optimizer_2",
    "torchrec_v100_4rank/sst_long_a2a_optimizer_4",
    "torchrec_v100_4rank/sst_long_a2a_optimizer_qcomm_trace",
    "ranking_2_of_128",
    "ranking_a100_rank0_of_16",
    "a100_ddp_nccl_args",
    "ns_absolute_ts",
    "nanogpt_h100_8rank",
    "mi300x_resnet_rank0_of_8",
    "gpu_only_mi210",
    "loader_bound_pair/num_workers_0",
    "loader_bound_pair/num_workers_4",
)
# Captures with several steps, so that the window of at least one step is closed by the next.
SWEPT = (
    "torchrec_v100_4rank/sst_sleep_pl_dense_after_backward_2",
    "torchrec_v100_4rank/sst_long_a2a_optimizer_4",
    "torchrec_v100_4rank/sst_long_a2a_optimizer_qcomm_trace",
    "ranking_a100_rank0_of_16",
    "a100_ddp_nccl_args",
    "nanogpt_h100_8rank",
    "ns_absolute_ts",
)


@pytest.mark.corpus
@pytest.mark.parametrize("folder", EVERY_SET)
def test_six_parts_make_the_window_on_public_traces(diagnose_corpus: Callable[..., Any], folder: str) -> None:
    diagnosis = diagnose_corpus(folder)
    assert diagnosis.partition
    assert all(row.window_ns > 0 for row in diagnosis.partition)
    assert_partition_adds_up(diagnosis)


@pytest.mark.corpus
@pytest.mark.parametrize("folder", SWEPT)
def test_the_partition_is_that_of_a_brute_force_sweep(
    diagnose_corpus: Callable[..., Any], corpus: Path, folder: str
) -> None:
    rows = by_rank_and_step(diagnose_corpus(folder).partition)
    compared = 0
    for path in sorted((corpus / folder).iterdir()):
        trace = RawTrace.read(path)
        for step, window in device_windows(trace).items():
            row = rows.get((trace.rank, step))
            if row is None:  # dropped as an outlier; other tests say which may be
                continue
            assert_row_is(row, window, partition(trace, window))
            compared += 1
    assert compared >= 1


def assert_row_is(row: Any, window: tuple[int, int], truth: dict[str, int]) -> None:
    where = f"rank {row.rank}, step {row.step}"
    assert row.window_ns == window[1] - window[0], where
    measured = {
        "compute": row.compute_ns,
        "comm": exposed_comm(row),
        "copy": row.exposed_copy_ns,
        "idle": row.idle_ns,
    }
    assert measured == truth, where


@given(knobs=jobs())
@settings(
    max_examples=25, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)
def test_any_job_is_partitioned_as_its_builder_and_the_sweep_say(
    knobs: JobBuilder, diagnose: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> None:
    job = knobs.build()
    folder = job.write(tmp_path_factory.mktemp("job"))
    diagnosis = diagnose(folder)
    assert_partition_adds_up(diagnosis)
    rows = by_rank_and_step(diagnosis.partition)
    compared = 0
    for rank in range(knobs.world_size):
        trace = RawTrace(job.document(rank))
        windows = device_windows(trace)
        for step in job.closed_steps:
            if (rank, step) not in rows:
                continue
            assert_row_is(rows[rank, step], windows[step], partition(trace, windows[step]))
            built = job.partition(rank, step)
            assert (rows[rank, step].compute_ns, rows[rank, step].idle_ns) == (
                built["compute"],
                built["idle"],
            )
            compared += 1
    assert compared >= knobs.world_size
