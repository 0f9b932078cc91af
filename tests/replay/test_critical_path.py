"""The critical path of graphs whose answer is a sum, and of built jobs whose late rank is known."""

import numpy as np

from tests.builders import MS, JobBuilder, Late
from tests.replay.jobs import graph_of, load
from traceinsight.replay.critical_path import CriticalPath, PathKind, critical_path
from traceinsight.replay.graph import EdgeKind, Graph, GraphDraft, NodeKind
from traceinsight.replay.solve import replay

ORIGIN = 1_000
AT = ORIGIN


def path_of(graph: Graph) -> CriticalPath:
    return critical_path(graph, replay(graph))


def pieces(path: CriticalPath) -> list[tuple[int, int, PathKind, int]]:
    """(start, end, kind, rank), ns after the origin."""
    columns = (path.start_ns - ORIGIN, path.end_ns - ORIGIN, path.kind, path.rank)
    return [
        (start, end, PathKind(kind), rank)
        for start, end, kind, rank in zip(*(column.tolist() for column in columns), strict=True)
    ]


def two_ranks() -> Graph:
    """Rank 0 computes 0 to 30, rank 1 (launched at 5, 2 ns of latency) 7 to 60; they meet; transfer to 80."""
    draft = GraphDraft(ORIGIN)
    step = np.zeros(1, dtype=np.int64)
    early = draft.add_nodes(
        NodeKind.WORK, 0, AT + np.array([0]), step=step, event=np.array([3]), duration_ns=np.array([30])
    )
    host = draft.add_nodes(NodeKind.HOST, 1, AT + np.array([0, 5]))
    late = draft.add_nodes(
        NodeKind.WORK, 1, AT + np.array([7]), step=step, event=np.array([4]), duration_ns=np.array([53])
    )
    draft.add_edges(EdgeKind.HOST_TIME, host[:1], host[1:], 5.0)
    draft.add_edges(EdgeKind.LAUNCH, host[1:], late, 2.0)
    arrivals = [
        draft.add_nodes(NodeKind.ARRIVAL, rank, AT + np.array([at])) for rank, at in ((0, 30), (1, 60))
    ]
    draft.add_edges(EdgeKind.STREAM, early, arrivals[0], after_end=True)
    draft.add_edges(EdgeKind.STREAM, late, arrivals[1], after_end=True)
    meeting = draft.add_nodes(NodeKind.MEETING, -1, AT + np.array([60]))
    for arrival in arrivals:
        draft.add_edges(EdgeKind.MEETING, arrival, meeting)
    transfer = draft.add_nodes(
        NodeKind.TRANSFER, 0, AT + np.array([60]), step=step, event=np.array([5]), duration_ns=np.array([20])
    )
    draft.add_edges(EdgeKind.MEETING, meeting, transfer)
    return draft.finish((0,))


def test_the_path_leads_through_whom_the_others_waited_for() -> None:
    path = path_of(two_ranks())
    assert pieces(path) == [
        (0, 5, PathKind.HOST, 1),
        (5, 7, PathKind.LAUNCH, 1),
        (7, 60, PathKind.WORK, 1),
        (60, 80, PathKind.TRANSFER, 0),
    ]
    assert path.event.tolist() == [-1, -1, 4, 5]


def test_what_nothing_explains_is_delay() -> None:
    draft = GraphDraft(ORIGIN)
    nodes = draft.add_nodes(
        NodeKind.WORK,
        2,
        AT + np.array([0, 50]),
        step=np.zeros(2, dtype=np.int64),
        duration_ns=np.array([20, 9]),
    )
    draft.add_edges(EdgeKind.STREAM, nodes[:1], nodes[1:], after_end=True)
    # ready at 20, started at 50
    assert pieces(path_of(draft.finish((0,)))) == [
        (0, 20, PathKind.WORK, 2),
        (20, 50, PathKind.DELAY, 2),
        (50, 59, PathKind.WORK, 2),
    ]


def test_host_time_between_many_launches_is_one_piece() -> None:
    draft = GraphDraft(ORIGIN)
    host = draft.add_nodes(NodeKind.HOST, 0, AT + np.array([0, 10, 30]), step=np.zeros(3, dtype=np.int64))
    draft.add_edges(EdgeKind.HOST_TIME, host[:-1], host[1:], np.array([10.0, 20.0]))
    assert pieces(path_of(draft.finish((0,)))) == [(0, 30, PathKind.HOST, 0)]


def test_a_stretch_without_work_has_no_path() -> None:
    draft = GraphDraft(ORIGIN)
    draft.add_nodes(NodeKind.HOST, 0, AT + np.array([0]))
    draft.add_edges(EdgeKind.HOST_TIME, np.array([-1]), np.array([-1]))
    assert pieces(path_of(draft.finish((0,)))) == []


def test_the_pieces_of_a_job_follow_each_other_and_a_late_rank_holds_most_of_them() -> None:
    """Rank 1 comes 2 ms late to every collective of a step of 12 ms; all others wait for it."""
    trace_set = load(JobBuilder(world_size=3, late=(Late(rank=1, ns=2 * MS),)).build())
    path = path_of(graph_of(trace_set))
    assert np.array_equal(path.start_ns[1:], path.end_ns[:-1])
    lengths = path.end_ns - path.start_ns
    assert lengths[path.rank == 1].sum() > 0.9 * lengths.sum()
