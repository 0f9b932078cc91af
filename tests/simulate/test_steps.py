"""Whole steps: what a change of the specification does to them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulate.specs import two_nodes
from traceinsight.simulate import SimulatedRun, simulate

# Exact arithmetic needs no jitter and no slowdown, one module whose exchange is the only exposed one, and
# lookups that outlast the next batch's first exchange, which would otherwise hold up the forward exchange.
PLAIN = {
    "jitter": 0.0,
    "comms": {"slowdown": 0.0},
    "tables": {"small": {"module": "ebc"}, "big": {"mean_ids": 100.0}},
    "dense": {"small_kernels": 0, "parameters": 0, "kernels": 10, "before_exchange_share": 0.0},
}


def plain(**change: object) -> SimulatedRun:
    merged = {key: value if not isinstance(value, dict) else dict(value) for key, value in PLAIN.items()}
    for key, value in change.items():
        merged[key] = {**merged.get(key, {}), **value} if isinstance(value, dict) else value  # type: ignore[dict-item]
    return simulate(two_nodes(**merged))


def exposed_ns(run: SimulatedRun) -> float:
    return float(run.truth.steps[2].exposed_transfer_ns.max())


def test_a_step_is_its_compute_and_its_exposed_communication() -> None:
    run = plain()
    step = run.truth.steps[2]
    parts = step.compute_ns + step.exposed_transfer_ns + step.exposed_wait_ns
    assert (parts <= step.window_ns).all()
    assert parts == pytest.approx(step.window_ns, rel=0.01)  # the rest is launch latency
    assert run.truth.step_ns == pytest.approx(float(step.window_ns.max()), rel=1e-3)
    assert run.truth.examples_per_s == pytest.approx(8 * 512 / run.truth.step_ns * 1e9)


@pytest.mark.parametrize("share", [0.1, 0.3, 0.9])
def test_dense_work_before_the_exchange_hides_exactly_the_smaller_of_both(share: float) -> None:
    serial, overlapped = (
        plain(dense={"before_exchange_share": 0.0}),
        plain(dense={"before_exchange_share": share}),
    )
    module = serial.workload.modules[0]
    forward, backward = module.forward.transfer_ns[0], module.backward.transfer_ns[0]
    hidden = min(forward, share * sum(serial.workload.forward_ns))
    hidden += min(backward, share * sum(serial.workload.backward_ns))
    assert exposed_ns(serial) == pytest.approx(forward + backward, rel=0.001)
    assert exposed_ns(serial) - exposed_ns(overlapped) == pytest.approx(hidden, rel=0.01, abs=20_000)


def test_the_pipeline_hides_the_data_distribution() -> None:
    serial, pipelined = plain(pipeline_depth=0), plain(pipeline_depth=1)
    distribution = sum(
        float(one.transfer_ns.max()) for one in serial.collectives if one.step == 27 and "kjt" in one.label
    )
    assert exposed_ns(serial) - exposed_ns(pipelined) == pytest.approx(distribution, rel=0.01)


def test_looking_up_ahead_hides_the_forward_exchange_as_well() -> None:
    pipelined, ahead = plain(pipeline_depth=1), plain(pipeline_depth=2)
    module = pipelined.workload.modules[0]
    assert exposed_ns(ahead) == pytest.approx(module.backward.transfer_ns[0], rel=0.01)


def test_jitter_of_one_seed_is_the_same_after_an_edit() -> None:
    before, after = (
        simulate(two_nodes(jitter=0.05, comms={"slowdown": 0.0}, batch_per_rank=batch))
        for batch in (512, 1024)
    )

    def gemm_ns(run: SimulatedRun) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        return next(row.dur_ns for row in run.rows if row.step == 26 and row.name.startswith("ampere"))

    assert gemm_ns(after) == pytest.approx(2 * gemm_ns(before), rel=1e-4)


@pytest.mark.parametrize(("kind", "ms"), [("compute_ms", 3.0), ("input_ms", 40.0)])
def test_an_injected_lateness_lengthens_the_step(kind: str, ms: float) -> None:
    healthy = plain().truth.step_ns
    late = plain(stragglers=[{"rank": 5, kind: ms}]).truth
    if kind == "input_ms":  # a loader slower than the step sets the pace: 1 ms and 40 more
        assert late.step_ns == pytest.approx(41e6, rel=0.01)
    else:
        assert late.step_ns - healthy == pytest.approx(ms * 1e6, rel=0.01)
    step = late.steps[2]
    assert step.exposed_wait_ns[5] < 0.1 * step.exposed_wait_ns[4]


def test_a_slow_loader_sets_the_pace() -> None:
    assert plain(input={"loader_ms": 60.0}).truth.step_ns == pytest.approx(60e6, rel=0.001)


def test_many_small_kernels_make_the_host_the_bottleneck() -> None:
    run = plain(
        dense={"small_kernels": 6000, "small_kernel_us": 1.0, "forward_gflop": 0.1}, batch_per_rank=64
    )
    # 6000 launches of 6 us and what the rest of the step's launches take
    assert run.truth.step_ns > 36e6
    step = run.truth.steps[2]
    assert (step.compute_ns < 0.5 * step.window_ns).all()


def test_a_first_step_can_be_an_outlier() -> None:
    first, *later = plain(capture={"first_step_extra_ms": 100.0}).truth.steps
    assert first.window_ns.max() > 100e6
    assert max(step.window_ns.max() for step in later[1:]) < 40e6


def test_replicas_are_synchronised_every_so_many_steps() -> None:
    run = plain(two_d={"group_size": 4, "sync_every": 2})
    syncs = [one.step for one in run.collectives if one.label == "dmp_collection_sync" and one.step >= 25]
    assert syncs == [25, 27, 29]


def test_gradient_buckets_add_up_to_the_parameters() -> None:
    run = simulate(two_nodes(comms={"ddp_bucket_mb": 3.0}))
    buckets = [one for one in run.collectives if one.step == 26 and one.label.startswith("ddp")]
    assert len(buckets) == 7  # 20 MB / 3 MB
    assert sum(int(one.payload.in_elements[0]) for one in buckets) == 5_000_000


def test_one_rank_has_no_gradients_to_reduce() -> None:
    run = simulate(two_nodes(cluster={"nodes": 1, "gpus_per_node": 1}))
    assert not [one for one in run.collectives if one.payload.operation == "allreduce"]


def test_dense_kernels_can_be_listed() -> None:
    run = plain(dense={"forward_kernels_us": [500.0, 1500.0], "backward_factor": 3.0})
    gemms = [row for row in run.rows if row.step == 26 and row.name.startswith("ampere")]
    # each forward kernel has two in backward, in reverse, which together take three times as long
    assert [int(row.dur_ns[0]) for row in gemms] == [
        500_000,
        1_500_000,
        2_250_000,
        2_250_000,
        750_000,
        750_000,
    ]
