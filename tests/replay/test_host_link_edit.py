"""``network=`` on CPU ranks: their link gets another rate, and the waits that it causes go with it."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.builders import MS
from tests.replay.jobs import assembled
from tests.trace.recordings import Row, mark, operator, recording, step
from traceinsight.replay.edits.edit import NotApplicableError
from traceinsight.replay.edits.registry import parse_edit
from traceinsight.replay.facts import Facts
from traceinsight.replay.graph import Graph, NodeKind
from traceinsight.replay.solve import expected_step_ns
from traceinsight.trace.trace_set import TraceSet

MB = 1_000_000
STEP_MS, STEPS = 282, 3
ONE_HOST = {"nodes": [{"ranks": [0, 1]}]}
Run = tuple[TraceSet, Graph]

# Per step and rank: 2 ms of ids, 40 ms of vectors and 40 ms of gradients over a link of 0.1 GB/s, 100 ms of
# compute after either of the latter. In forward rank 0 has its vectors at half time, in backward rank 1 its
# gradients: who goes on first waits at the next exchange for the other.


def rank(number: int) -> Any:
    rows, begin = [], 0
    for at in (count * STEP_MS * MS for count in range(STEPS)):
        got, back = at + (22, 42)[number] * MS, at + (182, 162)[number] * MS
        end = back + 100 * MS
        rows += [
            step(at // (STEP_MS * MS), begin, end),
            *exchange("## all2all_data:kjt values ##", begin, at + 2 * MS),
            *exchange("## All2All_Pooled_fwd ##", at + 2 * MS, got),
            operator("aten::mm", got, got + 100 * MS),
            *exchange("## All2All_Pooled_bwd ##", got + 100 * MS, back),
            operator("aten::mm", back, end),
        ]
        begin = end
    return recording(*rows, rank=number, world_size=2, backend="gloo")


def exchange(label: str, queued: int, end: int) -> list[Row]:
    return [
        mark(label, queued, queued + 1),
        operator("c10d::alltoall_base_", queued, queued + 1),
        mark("gloo:all_to_all", queued + 1, end, lane="worker"),
    ]


@pytest.fixture(scope="module")
def run() -> Run:
    trace_set, graph = assembled(rank(0), rank(1))
    return with_sizes(trace_set), graph


def with_sizes(trace_set: TraceSet) -> TraceSet:
    """Ids: half of 2 x 60 kB cross; vectors and gradients: half of 2 x 4 MB."""
    sized = []
    for one in trace_set.collectives:
        size = 60_000 if max(one.ends_ns) - one.last_arrival_ns < 10 * MS else 4 * MB
        sized.append(replace(one, members=tuple(replace(part, in_bytes=size) for part in one.members)))
    return replace(trace_set, collectives=tuple(sized), manifest=ONE_HOST)


def edited(run: Run, *edits: str) -> Graph:
    trace_set, graph = run
    for text in edits:
        graph = parse_edit(text).apply(graph, Facts(trace_set, graph))
    return graph


def transfers_ms(graph: Graph, number: int) -> list[float]:
    """Of one rank in the first step, in order of time."""
    nodes = graph.nodes
    mine = (nodes.kind == NodeKind.TRANSFER) & (nodes.rank == number) & (nodes.step == 0)
    return [round(float(ns) / MS, 3) for ns in nodes.duration_ns[np.flatnonzero(mine)]]


def test_the_job_is_as_described(run: Run) -> None:
    assert transfers_ms(run[1], 0) == [2, 20, 40]
    assert transfers_ms(run[1], 1) == [2, 40, 20]


def test_what_the_bytes_take_scales_and_the_rest_stays(run: Run) -> None:
    # Twice the rate. Of the 2 ms of ids, 60 kB at 0.1 GB/s explain 0.6; the other 1.4 ms stay.
    graph = edited(run, "network=0.2")
    assert transfers_ms(graph, 0) == [1.7, 10, 20]
    assert transfers_ms(graph, 1) == [1.7, 20, 10]


def test_a_slower_link_is_predicted_too(run: Run) -> None:
    assert transfers_ms(edited(run, "network=0.05"), 1) == [2.6, 80, 40]


def test_the_waits_that_the_link_causes_go_with_it(run: Run) -> None:
    before = expected_step_ns([run[1]])
    assert before == pytest.approx(STEP_MS * MS, rel=0.001)
    # 80 ms of exchanges and 0.6 ms of ids at a hundredth; no rank's own transfers are more than 60 ms.
    gained = before - expected_step_ns([edited(run, "network=10")])
    assert gained == pytest.approx(80.6 * MS * 0.99, rel=0.001)


def test_a_named_network_has_its_usual_efficiency(run: Run) -> None:
    # tcp_25g: 3.125 GB/s of which 40 % are reached.
    assert transfers_ms(edited(run, "network=tcp_25g"), 1) == transfers_ms(edited(run, "network=1.25"), 1)


def test_the_same_link_once_more_changes_nothing(run: Run) -> None:
    once = edited(run, "network=0.2")
    assert transfers_ms(edited(run, "network=0.2", "network=0.2"), 1) == transfers_ms(once, 1)


def test_between_hosts_the_rate_is_what_leaves_one(run: Run) -> None:
    # A host of its own for either rank: 2 MB leave each in 40 ms, 0.05 GB/s, and 30 kB of ids in 0.6 of 2 ms.
    apart = replace(run[0], manifest={"nodes": [{"ranks": [0]}, {"ranks": [1]}]}), run[1]
    assert transfers_ms(edited(apart, "network=0.1"), 1) == [1.7, 20, 10]


def test_without_sizes_nothing_is_predicted(run: Run) -> None:
    bare = tuple(
        replace(one, members=tuple(replace(part, in_bytes=None) for part in one.members))
        for one in run[0].collectives
    )
    with pytest.raises(NotApplicableError, match="to tell the link's rate"):
        edited((replace(run[0], collectives=bare), run[1]), "network=10")
