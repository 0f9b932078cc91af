"""Which ranks share a node: who says so, and how much of it is believed."""

from dataclasses import replace
from typing import Any

import pytest

from tests.trace.recordings import MS, lockstep
from traceinsight.trace.assemble import assemble
from traceinsight.trace.nodes import NodeLayout, node_layout
from traceinsight.trace.trace_set import TraceSet

RUN = assemble(lockstep(lambda rank, step, at: MS))  # four ranks, no host names


def run(*hosts: str | None, nodes: Any = None) -> TraceSet:
    ranks = tuple(
        replace(trace, recording=replace(trace.recording, host=host))
        for trace, host in zip(RUN.ranks, hosts or (None,) * 4, strict=True)
    )
    return replace(RUN, ranks=ranks, manifest={} if nodes is None else {"nodes": nodes})


def test_nobody_says_it() -> None:
    assert node_layout(run()) == NodeLayout()
    assert node_layout(run()).ranks_per_node is None


def test_the_manifest_goes_before_host_names() -> None:
    found = node_layout(run("a", "a", "b", "b", nodes=[{"ranks": [0, 3]}, {"ranks": [1, 2]}]))
    assert found == NodeLayout({0: 0, 3: 0, 1: 1, 2: 1}, whole=True, described=True)
    assert found.ranks_per_node == 2


def test_host_names_are_numbered_as_their_ranks_come() -> None:
    assert node_layout(run("b", "b", "a", "a")) == NodeLayout({0: 0, 1: 0, 2: 1, 3: 1}, whole=True)


def test_a_rank_without_a_host_leaves_the_layout_in_part() -> None:
    found = node_layout(run("a", "a", "b", None))
    assert found == NodeLayout({0: 0, 1: 0, 2: 1}, whole=False)
    assert found.ranks_per_node is None


def test_nodes_of_unequal_size_have_no_size() -> None:
    found = node_layout(run(nodes=[{"ranks": [0]}, {"ranks": [1, 2, 3]}]))
    assert found.whole and found.ranks_per_node is None


SOME = [{"ranks": [0, 1]}]


def test_a_manifest_that_leaves_ranks_out_gives_way_to_whole_host_names() -> None:
    beside = node_layout(run("a", "a", "b", "b", nodes=SOME))
    assert (beside.node_of, beside.whole, beside.described) == ({0: 0, 1: 0, 2: 1, 3: 1}, True, False)
    alone = node_layout(run(nodes=SOME))
    assert (alone.node_of, alone.whole, alone.described) == ({0: 0, 1: 0}, False, True)
    assert beside.unusable == alone.unusable == "they do not hold exactly the 4 ranks of the world"


@pytest.mark.parametrize(
    "nodes", ["two", [{"ranks": []}], [{"ranks": [0, 1]}, {"ranks": [1, 2, 3]}], [{}], 7]
)
def test_malformed_nodes_are_said_to_be_unusable(nodes: object) -> None:
    found = node_layout(run(nodes=nodes))
    assert not found.node_of
    assert found.unusable == "not every rank stands in exactly one"
