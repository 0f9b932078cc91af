"""Facts about the job: from a manifest that anybody may have written, and from host names."""

from dataclasses import replace
from typing import Any

import pytest

from tests.trace.recordings import MS, lockstep
from traceinsight.advice.job import JobFacts, Table
from traceinsight.engine.job import job_facts
from traceinsight.trace.assemble import assemble
from traceinsight.trace.trace_set import TraceSet

RUN = assemble(lockstep(lambda rank, step, at: MS))  # four ranks, no host names


def facts(**manifest: Any) -> JobFacts:
    found, notes = job_facts(replace(RUN, manifest=manifest))
    assert notes == []
    return found


def on_hosts(*hosts: str | None) -> TraceSet:
    ranks = [
        replace(trace, recording=replace(trace.recording, host=host))
        for trace, host in zip(RUN.ranks, hosts, strict=True)
    ]
    return replace(RUN, ranks=tuple(ranks))


def test_without_a_manifest_nothing_is_known() -> None:
    assert facts() == JobFacts()
    assert job_facts(RUN) == (JobFacts(), [])
    assert (facts().nodes, facts().ranks_per_node) == (None, None)


def test_nodes_come_from_the_manifest() -> None:
    found = facts(nodes=[{"node": 0, "ranks": [0, 1]}, {"node": 1, "ranks": [2, 3]}])
    assert found.node_of == {0: 0, 1: 0, 2: 1, 3: 1}
    assert (found.nodes, found.ranks_per_node) == (2, 2)


def test_uneven_nodes_have_no_size_in_common() -> None:
    found = facts(nodes=[{"ranks": [0]}, {"ranks": [1, 2, 3]}])
    assert (found.nodes, found.ranks_per_node) == (2, None)


def test_host_names_tell_nodes_where_all_ranks_were_captured() -> None:
    assert job_facts(on_hosts("b", "b", "a", "a"))[0].node_of == {0: 0, 1: 0, 2: 1, 3: 1}
    assert job_facts(on_hosts("b", "b", "a", None))[0].node_of is None
    assert job_facts(replace(on_hosts("b", "b", "a", "a"), world_size=8))[0].node_of is None


def test_the_manifest_counts_more_than_host_names() -> None:
    one_node = replace(on_hosts("b", "b", "a", "a"), manifest={"nodes": [{"ranks": [0, 1, 2, 3]}]})
    assert job_facts(one_node)[0].nodes == 1


def test_tables_network_environment_and_formats() -> None:
    found = facts(
        tables=[{"name": "t", "rows": 10, "dim": 4, "features": ["a", "b"]}, {"rows": 3, "dim": 2}],
        hardware={"network": "efa_p4d", "gpu": "A100"},
        environment={"NCCL_NET": "Socket", "HOME": "/root"},
        qcomms={"forward": "fp8", "backward": None},
    )
    assert found.tables == (Table(10, 4, 2), Table(3, 2, 1))
    assert found.network == "efa_p4d"
    assert found.environment == {"NCCL_NET": "Socket"}
    assert found.wire_formats == {"forward": "fp8"}


def test_what_the_job_counted_goes_before_what_was_configured() -> None:
    found = facts(wire={"forward": {"format": "fp16"}}, qcomms={"forward": "fp8"})
    assert found.wire_formats == {"forward": "fp16"}


DEEP: Any = []
for _ in range(2000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("part", "named"),
    [
        ({"nodes": "two"}, "nodes"),
        ({"nodes": [{"ranks": []}]}, "nodes"),
        ({"nodes": [{"ranks": [0, 1, -1]}]}, "nodes"),
        ({"nodes": [{"ranks": [0, 1, 1, 2, 3]}]}, "nodes"),
        ({"nodes": [{"ranks": [0, 1, 2]}]}, "nodes"),
        ({"nodes": [{"ranks": [10**30]}]}, "nodes"),
        ({"nodes": DEEP}, "nodes"),
        ({"tables": [{"rows": 10, "dim": 4}, {"rows": "many", "dim": 4}]}, "tables"),
        ({"tables": [{"rows": 0, "dim": 4}]}, "tables"),
        ({"tables": {"rows": 1}}, "tables"),
        ({"tables": [{"rows": float("nan"), "dim": 1}]}, "tables"),
        ({"hardware": {"network": ["efa_p4d"]}}, "hardware.network"),
        ({"hardware": {"network": "two tin cans"}}, "hardware.network"),
        ({"environment": {"NCCL_NET": 1}}, "environment.NCCL_NET"),
        ({"environment": {"NCCL_NET": "x" * 300}}, "environment.NCCL_NET"),
        ({"qcomms": {"forward": "fp3"}}, "forward number format"),
        ({"wire": {"backward": 8}}, "wire.backward"),
    ],
)
def test_a_malformed_part_is_left_out_and_named(part: dict[str, Any], named: str) -> None:
    sound = {"batch_per_rank": 8, "hardware": {"network": "ib_ndr"}} | part
    found, (note,) = job_facts(replace(RUN, manifest=sound))
    assert note.code == "malformed-manifest"
    assert note.count == 1
    assert named in note.message
    assert "two tin cans" not in note.message
    expected = JobFacts() if "hardware" in part else JobFacts(network="ib_ndr")
    assert found == expected


@pytest.mark.parametrize("part", ["hardware", "environment", "qcomms", "wire"])
@pytest.mark.parametrize("value", [[], "text", 3, True])
def test_a_part_of_another_kind_is_named_once(part: str, value: object) -> None:
    found, (note,) = job_facts(replace(RUN, manifest={part: value}))
    assert found == JobFacts()
    assert part in note.message
    assert note.count == 1


def test_null_is_not_known_and_no_fault() -> None:
    parts = ("nodes", "tables", "hardware", "environment", "qcomms", "wire")
    assert facts(**dict.fromkeys(parts)) == JobFacts()
