"""The analysis on simulated runs: what it measures is what happened.

Exact where every rank is captured; clocks of two hosts are up to 10 ms off throughout. The first captured
step is left out where ranks begin the capture at different moments of their device's work: collectives that
were launched before it then have counterparts on some ranks only.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.simulate.specs import random_spec, two_nodes
from traceinsight.api import analyze
from traceinsight.diagnosis import Diagnosis
from traceinsight.simulate import SimulatedRun, simulate, write_run

TOLERANCE_NS = 1_000
"""The clock estimate rounds to whole nanoseconds; matched ends agree exactly in a simulation."""

PARTS = ("window", "compute", "exposed_comm_transfer", "exposed_comm_wait")


def analysed(folder: Path, **change: Any) -> tuple[SimulatedRun, Diagnosis]:
    change["cluster"] = {"clock_skew_ms": 10.0, **change.get("cluster", {})}
    run = simulate(two_nodes(**change))
    write_run(run, folder / "run")
    return run, analyze(folder / "run", workers=1)


def worst_error_ns(run: SimulatedRun, found: Diagnosis, part: str, *, skip_first: bool = False) -> int:
    fields = {"exposed_comm_transfer": "exposed_transfer_ns", "exposed_comm_wait": "exposed_wait_ns"}
    truth = {step.step: getattr(step, fields.get(part, f"{part}_ns")) for step in run.truth.steps}
    rows = [row for row in found.partition if not (skip_first and row.step == run.spec.capture.first_step)]
    return max(abs(getattr(row, f"{part}_ns") - int(truth[row.step][row.rank])) for row in rows)


def warnings(found: Diagnosis) -> list[str]:
    return [note.code for note in found.data_quality if note.severity != "info"]


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"stragglers": [{"rank": 5, "compute_ms": 3.0}]},
        {"pipeline_depth": 2},
        {"comms": {"qcomms_forward": "fp8", "qcomms_backward": "int8"}},
        {"capture": {"sequence_numbers": True}},
        {"capture": {"operators": False, "flows": False}},
        {"tables": {"big": {"pooling": "none", "zipf": 1.1}}},
        {"host": {"sync_points": 8, "stall_ms": 5.0}},
        {"input": {"loader_ms": 60.0}},
        {"cluster": {"gpu": "V100", "network": "tcp_25g"}},
    ],
    ids=str,
)
def test_a_whole_run_is_read_without_a_warning_and_measured_exactly(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    run, found = analysed(tmp_path, **change)
    assert warnings(found) == []
    assert found.run.simulated
    assert (found.run.world_size, found.run.steps) == (8, [25, 26, 27, 28, 29])
    assert {part: worst_error_ns(run, found, part) <= TOLERANCE_NS for part in PARTS} == dict.fromkeys(
        PARTS, True
    )
    assert all(row.exposed_comm_unsplit_ns == 0 for row in found.partition)


@pytest.mark.parametrize("seed", range(8))
def test_any_specification_is_measured_exactly(tmp_path: Path, seed: int) -> None:
    run = simulate(random_spec(seed))
    write_run(run, tmp_path / "run")
    found = analyze(tmp_path / "run", workers=1)
    assert {part: worst_error_ns(run, found, part) for part in PARTS} == {
        part: pytest.approx(0, abs=TOLERANCE_NS) for part in PARTS
    }


def test_clock_offsets_are_found(tmp_path: Path) -> None:
    run, found = analysed(tmp_path)
    measured = np.array([clock.offset_ns for clock in found.clocks])
    difference = measured - run.clock_offset_ns
    assert np.ptp(run.clock_offset_ns) > 1_000_000
    assert np.ptp(difference) <= TOLERANCE_NS


def test_collectives_have_their_transfer_bytes_and_waits(tmp_path: Path) -> None:
    run, found = analysed(
        tmp_path, capture={"sequence_numbers": True}, stragglers=[{"rank": 5, "compute_ms": 3.0}]
    )
    for label in ("All2All_Pooled_fwd", "All2All_Pooled_bwd"):
        meetings = [one for one in run.collectives if one.step == 27 and one.label.startswith(label)]
        rows = [row for row in found.collectives if row.step == 27 and label in (row.label or "")]
        assert len(rows) == len(meetings) == 2
        for meeting, row in zip(meetings, rows, strict=True):
            waits = (meeting.last_ns - meeting.arrival_ns).tolist()
            assert row.transfer_ns == pytest.approx(int(meeting.transfer_ns[0]), abs=TOLERANCE_NS)
            assert [row.wait_ns[rank] for rank in range(8)] == pytest.approx(waits, abs=TOLERANCE_NS)
            assert row.bytes == int(meeting.payload.in_elements.max()) * 4
            assert row.dtype == "Float"


@pytest.mark.parametrize(
    ("injected", "cause"),
    [({"compute_ms": 3.0}, "compute"), ({"input_ms": 30.0}, "input"), ({"host_ms": 30.0}, "host")],
    ids=str,
)
def test_a_straggler_is_found_with_its_lateness_and_cause(
    tmp_path: Path, injected: dict[str, float], cause: str
) -> None:
    # Every other rank is ready when rank 5 is not: it is late by what the step takes longer because of it.
    # (An input or host that is 30 ms slower costs less: the step's other 24 ms hide most of it.)
    healthy = simulate(two_nodes())
    run, found = analysed(tmp_path, stragglers=[{"rank": 5, **injected}])
    costs_ns = run.truth.step_ns - healthy.truth.step_ns
    assert costs_ns > 2e6
    assert [straggler.ranks for straggler in found.stragglers] == [[5]]
    straggler = found.stragglers[0]
    assert straggler.cause == cause
    assert straggler.lateness_ns.expected == pytest.approx(costs_ns, rel=0.02)
    assert straggler.ceiling_ns == pytest.approx(costs_ns, rel=0.02)


def test_a_healthy_run_blames_nobody(tmp_path: Path) -> None:
    # a network that keeps up, and gradients in buckets small enough to be reduced beside the backward pass
    _, found = analysed(tmp_path, cluster={"network": "ib_ndr"}, comms={"ddp_bucket_mb": 2.0})
    assert found.stragglers == []
    assert found.findings == []


@pytest.mark.parametrize("strays", [False, True])
def test_2d_groups_are_matched_apart(tmp_path: Path, strays: bool) -> None:
    run, found = analysed(
        tmp_path,
        two_d={"group_size": 4, "sync_share": 0.1},
        stragglers=[{"rank": 5, "compute_ms": 3.0}],
        capture={"strays": strays},
    )
    truth = {step.step: step.exposed_wait_ns for step in run.truth.steps}
    for row in [row for row in found.partition if row.step != run.spec.capture.first_step]:
        wait, split_off = row.exposed_comm_wait_ns, row.exposed_comm_unsplit_ns
        assert split_off == 0 or strays  # strays name no group of several: their waits are left unsplit
        assert wait <= int(truth[row.step][row.rank]) + TOLERANCE_NS <= wait + split_off + 2 * TOLERANCE_NS
    assert [straggler.ranks for straggler in found.stragglers] == [[5]]


def test_lost_kernels_cost_precision_not_the_straggler(tmp_path: Path) -> None:
    run, found = analysed(
        tmp_path,
        capture={"dropped_kernel_share": 0.01, "dropped_kernel_ranks": [2, 6]},
        stragglers=[{"rank": 5, "compute_ms": 3.0}],
    )
    assert [straggler.ranks for straggler in found.stragglers] == [[5]]
    whole = [row for row in found.partition if row.rank not in {2, 6} and row.step > 25]
    truth = {step.step: step for step in run.truth.steps}
    assert whole
    for row in whole:  # ranks that lost nothing keep their compute; waits beside lost ends go to "unsplit"
        assert abs(row.compute_ns - int(truth[row.step].compute_ns[row.rank])) <= TOLERANCE_NS
        split = row.exposed_comm_transfer_ns + row.exposed_comm_wait_ns + row.exposed_comm_unsplit_ns
        exposed = truth[row.step].exposed_transfer_ns[row.rank] + truth[row.step].exposed_wait_ns[row.rank]
        assert abs(split - int(exposed)) <= TOLERANCE_NS


def test_missing_ranks_are_named_and_the_rest_is_right(tmp_path: Path) -> None:
    run, found = analysed(
        tmp_path, capture={"missing_ranks": [1, 6]}, stragglers=[{"rank": 5, "compute_ms": 3.0}]
    )
    assert found.run.missing_ranks == [1, 6]
    assert "missing-ranks" in warnings(found)
    assert [straggler.ranks for straggler in found.stragglers] == [[5]]
    assert worst_error_ns(run, found, "window") <= TOLERANCE_NS
    assert worst_error_ns(run, found, "compute") <= TOLERANCE_NS


def test_an_outlier_first_step_is_dropped(tmp_path: Path) -> None:
    _, found = analysed(tmp_path, capture={"first_step_extra_ms": 100.0})
    assert [drop.step for drop in found.run.dropped_steps] == [25]


def test_groups_of_more_than_thirty_ranks_are_cut_short_and_still_matched(tmp_path: Path) -> None:
    run, found = analysed(tmp_path, cluster={"nodes": 4, "gpus_per_node": 8}, dense={"small_kernels": 0})
    assert warnings(found) == []
    assert max(worst_error_ns(run, found, part) for part in PARTS) <= TOLERANCE_NS


def test_many_small_kernels_are_the_hosts_fault(tmp_path: Path) -> None:
    change: dict[str, Any] = {"forward_gflop": 0.1, "small_kernel_us": 1.0}
    run, found = analysed(tmp_path, dense={**change, "small_kernels": 6000}, batch_per_rank=64)
    (finding,) = found.findings
    assert (finding.rule, finding.ranks) == ("host-bound", list(range(8)))
    # The device runs for 1 us of each launch's 6: what it neither computes nor communicates is the host's.
    truth = run.truth.steps[2]
    idle = 1 - (truth.compute_ns + truth.exposed_transfer_ns + truth.exposed_wait_ns) / truth.window_ns
    assert finding.evidence[0].value == pytest.approx(float(np.median(idle)), abs=0.02)


def test_as_many_kernels_that_keep_the_device_busy_are_not(tmp_path: Path) -> None:
    _, found = analysed(tmp_path, dense={"small_kernels": 6000, "small_kernel_us": 12.0})
    assert "host-bound" not in [finding.rule for finding in found.findings]
