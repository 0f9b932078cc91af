"""The graph: order, edges the measurement contradicts, delays nothing explains."""

from dataclasses import replace

import numpy as np
import pytest

from traceinsight.replay.graph import EdgeKind, Graph, GraphDraft, NodeKind, ReplicaSync
from traceinsight.replay.solve import expected_step_ns, replay, step_ends_ns, step_length_ns

ORIGIN = 1_000


def chain(*moments: int, lags: tuple[int, ...], durations: tuple[int, ...] | None = None) -> Graph:
    """Work that waits for the end of the work before it, plus a lag."""
    draft = GraphDraft(ORIGIN)
    lengths = np.array(durations or (0,) * len(moments))
    nodes = draft.add_nodes(NodeKind.WORK, 0, ORIGIN + np.array(moments), duration_ns=lengths)
    draft.add_edges(EdgeKind.STREAM, nodes[:-1], nodes[1:], np.array(lags, dtype=float), after_end=True)
    return draft.finish((0,))


def test_unedited_replay_gives_the_measured_starts() -> None:
    graph = chain(0, 50, 200, lags=(5, 10), durations=(20, 70, 10))
    assert replay(graph).tolist() == [0, 50, 200]


def test_a_delay_that_nothing_explains_stays_when_the_work_before_gets_shorter() -> None:
    graph = chain(0, 50, lags=(5,), durations=(20, 1))  # ready at 25, started at 50: 25 ns unexplained
    assert graph.edges.unexplained_ns.tolist() == [25]
    assert replay(graph.with_durations(np.array([8.0, 1.0]))).tolist() == [0, 8 + 5 + 25]


def test_an_edge_that_the_measurement_contradicts_is_dropped() -> None:
    graph = chain(0, 10, lags=(0,), durations=(20, 1))  # it cannot have waited for an end at 20
    assert len(graph.edges.source) == 0
    assert replay(graph).tolist() == [0, 10]


def test_nodes_are_put_in_order_of_time_whatever_the_order_they_came_in() -> None:
    draft = GraphDraft(ORIGIN)
    late = draft.add_nodes(NodeKind.WORK, 0, np.array([ORIGIN + 300]))
    early = draft.add_nodes(NodeKind.HOST, 0, np.array([ORIGIN + 100]))
    draft.add_edges(EdgeKind.LAUNCH, early, late, 200.0)
    graph = draft.finish((0,))
    assert graph.nodes.measured_ns.tolist() == [100, 300]
    assert graph.edges.source.tolist() == [0]
    assert graph.edges.target.tolist() == [1]


def test_at_equal_times_an_arrival_comes_before_its_meeting_and_that_before_the_transfer() -> None:
    draft = GraphDraft(ORIGIN)
    at = np.array([ORIGIN + 10])
    transfer = draft.add_nodes(NodeKind.TRANSFER, 0, at)
    meeting = draft.add_nodes(NodeKind.MEETING, -1, at)
    arrival = draft.add_nodes(NodeKind.ARRIVAL, 0, at)
    draft.add_edges(EdgeKind.MEETING, arrival, meeting)
    draft.add_edges(EdgeKind.MEETING, meeting, transfer)
    graph = draft.finish((0,))
    assert graph.nodes.kind.tolist() == [NodeKind.ARRIVAL, NodeKind.MEETING, NodeKind.TRANSFER]
    assert len(graph.edges.source) == 2


def test_the_latest_predecessor_decides_and_another_takes_over_when_it_gets_shorter() -> None:
    draft = GraphDraft(ORIGIN)
    nodes = draft.add_nodes(
        NodeKind.WORK, 0, ORIGIN + np.array([0, 1, 100]), duration_ns=np.array([60, 99, 5])
    )
    draft.add_edges(EdgeKind.STREAM, nodes[:2], np.repeat(nodes[2:], 2), after_end=True)
    graph = draft.finish((0,))
    assert replay(graph)[2] == 100
    assert replay(graph.with_durations(np.array([60.0, 10.0, 5.0])))[2] == 60


def test_missing_sources_make_no_edge() -> None:
    draft = GraphDraft(ORIGIN)
    nodes = draft.add_nodes(NodeKind.WORK, 0, ORIGIN + np.array([0, 5]))
    draft.add_edges(EdgeKind.STREAM, np.array([-1, int(nodes[0])]), np.array([int(nodes[1]), -1]))
    assert len(draft.finish((0,)).edges.source) == 0


def test_more_edges_bind_beside_the_old_ones() -> None:
    graph = chain(0, 50, 200, lags=(5, 10), durations=(20, 70, 10))
    more = graph.with_more_edges(EdgeKind.STREAM, np.array([0, 0]), np.array([1, 2]))
    assert replay(more).tolist() == [0, 50, 200]
    assert replay(more.with_durations(np.array([400.0, 1.0, 1.0]))).tolist() == [0, 430, 511]
    freed = more.with_lags(np.where(more.edges.source == 1, -1e18, more.edges.lag_ns))
    assert replay(freed)[2] == 20  # what it was only ordered behind by the new edge


def two_steps(*moments: int) -> Graph:
    draft = GraphDraft(0)
    size = len(moments)
    draft.add_nodes(NodeKind.WORK, 0, np.array(moments), step=np.arange(size), duration_ns=np.full(size, 10))
    nodes = np.arange(size)
    draft.add_edges(EdgeKind.STREAM, nodes[:-1], nodes[1:], after_end=True)
    return draft.finish(tuple(range(size)))


def test_a_step_ends_with_its_last_work() -> None:
    graph = two_steps(0, 30, 90)
    assert step_ends_ns(graph, replay(graph)) == [10, 40, 100]
    assert step_length_ns([graph], [replay(graph)]) == pytest.approx((100 - 10) / 2)


def test_a_stretch_of_one_step_counts_only_where_there_is_no_longer_one() -> None:
    single, double = two_steps(25), two_steps(0, 30)
    assert step_length_ns([single], [replay(single)]) == 35
    assert step_length_ns([single, double], [replay(single), replay(double)]) == 30


def with_slack(steps: int) -> Graph:
    """Each step works 10 ns and starts 30 ns after the one before it: 20 ns of slack."""
    draft, at = GraphDraft(0), np.arange(steps)
    clock = draft.add_nodes(NodeKind.HOST, 0, 30 * at)
    work = draft.add_nodes(NodeKind.WORK, 0, 30 * at, step=at, duration_ns=np.full(steps, 10))
    draft.add_edges(EdgeKind.HOST_TIME, clock[:-1], clock[1:], 30.0)
    draft.add_edges(EdgeKind.LAUNCH, clock, work)
    draft.add_edges(EdgeKind.STREAM, work[:-1], work[1:], after_end=True)
    return draft.finish(tuple(range(steps)))


@pytest.mark.parametrize(
    ("steps", "every", "held", "expected"),
    [
        # Each step takes 10 + 50 ns.
        (5, 1, 50, 60),
        # Of 110 ns, the slack of the four steps up to the next sync makes up for 80: (4 * 10 + 110) / 4 > 30.
        (5, 4, 110, 30 + (110 - 80) / 4),
        # All of 50 ns is made up for in three steps.
        (5, 4, 50, 30),
        # Two whole periods of two steps; the fifth length, of a third period, is left out.
        (6, 2, 60, 30 + (60 - 40) / 2),
        # Of a period of ten steps four lengths were captured: they make up for 80 of 110 ns.
        (5, 10, 110, 30 + (110 - 80) / 10),
        # Nothing follows the sync of a single step.
        (1, 1, 50, 10),
    ],
)
def test_the_steps_after_a_replica_sync_make_up_for_a_part_of_it(
    steps: int, every: int, held: int, expected: float
) -> None:
    graph = with_slack(steps)
    held_ns = np.where(graph.nodes.kind == NodeKind.WORK, held, 0).astype(float)
    assert expected_step_ns([replace(graph, sync=ReplicaSync(held_ns, every))]) == pytest.approx(expected)
    assert expected_step_ns([graph]) == (30 if steps > 1 else 10)


def test_the_syncs_of_several_stretches_count_by_their_lengths() -> None:
    """Four lengths of 30 + 30/4 ns, and one of which a sync of 110 ns leaves 90: (4 * 7.5 + 90 / 4) / 5."""
    graphs = []
    for graph in (with_slack(5), with_slack(2)):
        held_ns = np.where(graph.nodes.kind == NodeKind.WORK, 110.0, 0.0)
        graphs.append(replace(graph, sync=ReplicaSync(held_ns, 4)))
    assert expected_step_ns(graphs) == pytest.approx(30 + (4 * 7.5 + 90 / 4) / 5)
