"""Which link a group crosses, and what its datasheet allows."""

from dataclasses import replace
from typing import Any

import pytest

from tests.trace.recordings import MS, US, kernel, launched, recording, step
from traceinsight.analyses.links import group_links
from traceinsight.base.hardware import GPUS, NETWORKS
from traceinsight.diagnosis import GroupLink
from traceinsight.trace.assemble import assemble
from traceinsight.trace.recording import CommArgs, Device
from traceinsight.trace.trace_set import TraceSet

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def run(hosts: list[str | None], device: str = "NVIDIA A100-SXM4-80GB", **manifest: Any) -> TraceSet:
    """One all-reduce of all ranks, whose hosts are given."""
    size = len(hosts)
    args = CommArgs(collective="allreduce", group_ranks=tuple(range(size)))
    recordings = []
    for rank, host in enumerate(hosts):
        piece = kernel(ALL_REDUCE, 1000 * US, 1100 * US, 1, stream=20, args=args)
        own = recording(step(0, 0, 2 * MS), launched(piece, 10 * US), rank=rank, world_size=size)
        recordings.append(replace(own, host=host, devices=(Device(0, device),)))
    return assemble(recordings, manifest=manifest or None)


def link(trace_set: TraceSet) -> GroupLink:
    (one,) = group_links(trace_set)
    return one


def test_inside_a_node_the_gpus_links_count() -> None:
    one = link(run(["a", "a"]))
    assert (one.nodes, one.reason, one.ranks, one.group) == (1, None, [0, 1], "0,1")
    assert one.ring_gbps == one.all_to_all_gbps == GPUS["A100"].link_gbps
    assert "A100" in (one.link or "")


def test_between_nodes_the_named_network_counts() -> None:
    """2 nodes of 2: a rank sends 2/4 of its payload off the node, through half of 50 GB/s; bus counts 3/4."""
    one = link(run(["a", "a", "b", "b"], hardware={"network": "efa_p4d"}))
    assert one.nodes == 2
    assert one.ring_gbps == NETWORKS["efa_p4d"].node_gbps == 50
    assert one.all_to_all_gbps == pytest.approx(25 * (3 / 4) / (2 / 4))


def test_the_manifest_says_more_than_host_names() -> None:
    nodes = [{"node": 0, "ranks": [0]}, {"node": 1, "ranks": [1]}]
    assert link(run(["a", "a"], nodes=nodes, hardware={"network": "ib_ndr"})).nodes == 2


@pytest.mark.parametrize(
    ("trace_set", "reason"),
    [
        (run([None, None]), "which ranks share a node"),
        (run(["a", "b"]), "network between the nodes"),
        (run(["a", "b"], hardware={"network": "string and tins"}), "network between the nodes"),
        (run(["a", "a"], device="NVIDIA A100-PCIE-40GB"), "no link datasheet for NVIDIA A100-PCIE-40GB"),
        (run(["a", "a"], device="NVIDIA H100 NVL"), "no link datasheet"),
        (run(["a", "a"], device="NVIDIA GH200 480GB"), "no link datasheet"),
        (run(["a", "a"], nodes="nonsense", device="FastChip 9"), "no link datasheet for FastChip 9"),
    ],
)
def test_what_is_not_known_is_said(trace_set: TraceSet, reason: str) -> None:
    one = link(trace_set)
    assert (one.ring_gbps, one.all_to_all_gbps, one.link) == (None, None, None)
    assert reason in (one.reason or "")
