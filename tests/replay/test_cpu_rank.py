"""CPU ranks over gloo: waits end with their collective, the host's own work inside them stays."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.builders import MS, US, JobBuilder, Late
from tests.replay.jobs import assembled, graph_of, load, predicted_ns, prepared, step_ns
from tests.trace.recordings import mark, operator, recording, step
from traceinsight.replay.graph import NodeKind
from traceinsight.replay.solve import replay

CPU = JobBuilder(gpu=False)
LATE = replace(CPU, late=(Late(2, 2 * MS),))


def test_unedited_replay_gives_the_measured_steps() -> None:
    run = prepared(CPU.build())
    graph = run.graphs[0]
    assert replay(graph) == pytest.approx(graph.nodes.measured_ns, abs=1)
    assert run.step_ns == step_ns(CPU.build())
    assert run.residual.worst_share == 0


def rank(number: int, own: int, *, extra: int = 0, apart: int = 0) -> Any:
    """``own`` ns of compute, an all-to-all queued, ``extra`` ns of compute in its wait, then 100 us more.

    Rank 1 computes 500 us and is last; the transfer takes 50 us. ``apart``: host time without any operator
    after the collective has ended, still inside the wait.
    """
    queued = own
    met, end = 505 * US, 555 * US
    resumed = end + apart
    return recording(
        step(0, 0, resumed + 100 * US),
        operator("aten::mm", 0, queued),
        operator("c10d::alltoall_base_", queued, queued + 5 * US),
        mark("gloo:all_to_all", queued + 5 * US, end, lane="worker"),
        operator("aten::add", queued + 5 * US, queued + 5 * US + extra) if extra else [],
        operator("aten::mm", resumed, resumed + 100 * US),
        rank=number, world_size=2, backend="gloo",
    ), met  # fmt: skip


def host_end(graph: Any, number: int) -> float:
    """Replayed end of a rank's step: its last moment."""
    own = np.flatnonzero((graph.nodes.rank == number) & (graph.nodes.kind == NodeKind.HOST))
    return float(replay(graph)[own[-1]])


def shortened(graph: Any, by_ns: float) -> Any:
    """Rank 1 queues its collective earlier."""
    lag = graph.edges.lag_ns.copy()
    target = graph.edges.target
    hosts = (graph.nodes.rank[target] == 1) & (graph.nodes.kind[target] == NodeKind.HOST)
    first = next(at for at in np.flatnonzero(hosts) if lag[at] > by_ns)
    lag[first] -= by_ns
    return graph.with_lags(lag)


def test_a_wait_ends_earlier_when_the_last_member_comes_earlier() -> None:
    _, graph = assembled(rank(0, 100 * US)[0], rank(1, 500 * US)[0])
    assert host_end(graph, 0) == 655 * US
    assert host_end(shortened(graph, 300 * US), 0) == 355 * US


def test_own_host_work_inside_a_wait_stays() -> None:
    """200 us after the collective's end the main thread goes on: Python, which no shorter wait removes."""
    _, graph = assembled(rank(0, 100 * US, apart=200 * US)[0], rank(1, 500 * US)[0])
    assert host_end(graph, 0) == 855 * US
    assert host_end(shortened(graph, 300 * US), 0) == 555 * US


def test_compute_beside_a_collective_is_no_waiting() -> None:
    """Rank 0 computes 350 us while the exchange goes on: if that were quick, it would go on at 455 us."""
    _, graph = assembled(rank(0, 100 * US, extra=350 * US)[0], rank(1, 500 * US)[0])
    assert host_end(graph, 0) == 655 * US
    assert host_end(shortened(graph, 450 * US), 0) >= (100 + 5 + 350 + 100) * US


def two_exchanges(number: int) -> Any:
    """One wait follows another with nothing but the queueing of the second between them."""
    late = 300 * US if number else 100 * US
    return recording(
        step(0, 0, 600 * US), operator("aten::mm", 0, late),
        operator("c10d::alltoall_base_", late, late + 5 * US),
        mark("gloo:all_to_all", late + 5 * US, 355 * US, lane="worker"),
        operator("c10d::allreduce_", 355 * US, 360 * US),
        mark("gloo:all_reduce", 360 * US, 500 * US, lane="worker"),
        operator("aten::mm", 500 * US, 600 * US),
        rank=number, world_size=2, backend="gloo",
    )  # fmt: skip


def test_a_wait_is_cut_where_the_next_collective_is_queued() -> None:
    trace_set, graph = assembled(two_exchanges(0), two_exchanges(1))
    duration = graph.nodes.duration_ns.copy()
    first = graph.nodes.collective == next(
        at for at, one in enumerate(trace_set.collectives) if one.operation == "all_to_all"
    )
    duration[first & (graph.nodes.kind == NodeKind.TRANSFER)] -= 40 * US
    arrivals = (graph.nodes.kind == NodeKind.ARRIVAL) & ~first
    assert replay(graph.with_durations(duration))[arrivals] == pytest.approx(320 * US)


def test_clocks_change_no_prediction() -> None:
    ahead = replace(LATE, clock_ahead_ns={1: 7 * MS, 2: -3 * MS})
    expected = predicted_ns(LATE.build(), ["no-straggler=2"])
    assert expected < 0.9 * step_ns(LATE.build())
    assert predicted_ns(ahead.build(), ["no-straggler=2"]) == pytest.approx(expected, abs=1)


def test_a_late_rank_taken_away_leaves_the_job_without_it() -> None:
    truth = step_ns(CPU.build())
    assert step_ns(LATE.build()) > 1.3 * truth
    assert predicted_ns(LATE.build(), ["no-straggler=2"]) == pytest.approx(truth, rel=0.03)


def test_a_built_job_has_one_wait_per_collective_and_rank() -> None:
    trace_set = load(CPU.build())
    graph = graph_of(trace_set)
    transfers = graph.nodes.kind == NodeKind.TRANSFER
    assert transfers.sum() == 4 * 4 * 4  # ranks, steps, collectives
