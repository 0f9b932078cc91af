"""What each edit does to one graph, in numbers; and reading edits from text."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.builders import DEFAULT_COLLECTIVES, MS, POOLED_A2A, US, JobBuilder, Late
from tests.replay.jobs import assembled, graph_of, load, starts
from tests.trace.recordings import copy, kernel, launched, recording, step
from traceinsight.base.errors import UsageError
from traceinsight.replay.edits.balance import Balance
from traceinsight.replay.edits.edit import NotApplicableError
from traceinsight.replay.edits.more_nodes import MoreNodes
from traceinsight.replay.edits.registry import EDITS, edit_lines, parse_edit
from traceinsight.replay.edits.sharding_groups import ShardingGroups, owned_bytes
from traceinsight.replay.facts import Facts
from traceinsight.replay.graph import Graph, NodeKind
from traceinsight.replay.links import Links
from traceinsight.replay.solve import replay, step_length_ns
from traceinsight.trace.trace_set import TraceSet

DEFAULT = JobBuilder()
KJT_NS, A2A_NS, ALL_REDUCE_NS = 30 * US, 100 * US, 500 * US
Run = tuple[TraceSet, Graph]


@pytest.fixture(scope="module")
def run() -> Run:
    trace_set = load(DEFAULT.build())
    return trace_set, graph_of(trace_set)


def edited(run: Run, text: str) -> Graph:
    trace_set, graph = run
    return parse_edit(text).apply(graph, Facts(trace_set, graph))


def transfers(run: Run, graph: Graph, operation: str, phase: str) -> set[int]:
    """Rounded lengths of all transfers of one kind."""
    chosen = Facts(run[0], graph).of_collectives(
        NodeKind.TRANSFER, lambda one: one.operation == operation and one.phase == phase
    )
    return set(np.rint(graph.nodes.duration_ns[chosen]).astype(int).tolist())


# Of the built job the quickest all-to-all takes 30 us and so counts as the latency of all.
PAYLOAD_NS = A2A_NS - KJT_NS
CODEC_NS = 1.25 * 4_000_000 / (2039 * 0.7)  # 1,000,000 FP32 values through an A100's memory


@pytest.mark.parametrize(
    ("dtype", "share"), [("bf16", 1 / 2), ("fp16", 1 / 2), ("fp8", 1.06 / 4), ("int8", 1.06 / 4)]
)
def test_qcomms_shrinks_the_payload_and_adds_the_codec_on_both_sides(
    run: Run, dtype: str, share: float
) -> None:
    graph = edited(run, f"qcomms={dtype}")
    expected = round(KJT_NS + PAYLOAD_NS * share + CODEC_NS)
    assert transfers(run, graph, "all_to_all", "forward") == {expected}
    assert transfers(run, graph, "all_to_all", "backward") == {expected}
    before, after = run[1], graph
    encoded = np.flatnonzero(after.edges.lag_ns != before.edges.lag_ns)
    assert set(after.nodes.kind[after.edges.target[encoded]].tolist()) == {NodeKind.ARRIVAL}
    added = (after.edges.lag_ns - before.edges.lag_ns)[encoded]
    assert added == pytest.approx(np.full(len(encoded), CODEC_NS))


def test_qcomms_leaves_ids_and_dense_gradients_alone(run: Run) -> None:
    graph = edited(run, "qcomms=fp8")
    assert transfers(run, graph, "all_to_all", "sparse_data_dist") == {KJT_NS}
    assert transfers(run, graph, "all_reduce", "backward") == {ALL_REDUCE_NS}


def test_qcomms_means_nothing_where_values_are_that_narrow_already() -> None:
    half = tuple(replace(one, dtype="Half") for one in DEFAULT_COLLECTIVES)
    trace_set = load(JobBuilder(collectives=half).build())
    narrow = trace_set, graph_of(trace_set)
    with pytest.raises(NotApplicableError, match="wider than bf16"):
        edited(narrow, "qcomms=bf16")
    assert transfers(narrow, edited(narrow, "qcomms=fp8"), "all_to_all", "forward") == {
        round(KJT_NS + PAYLOAD_NS * 1.06 / 2 + CODEC_NS / 2)
    }


def test_narrow_halves_payloads_and_lookups() -> None:
    trace_set = load(JobBuilder(late=tuple(Late(rank, MS) for rank in range(4))).build())
    slow = trace_set, graph_of(trace_set)
    graph = edited(slow, "narrow=2")
    assert transfers(slow, graph, "all_to_all", "forward") == {KJT_NS + PAYLOAD_NS // 2}
    assert transfers(slow, graph, "all_to_all", "sparse_data_dist") == {KJT_NS}
    lookups = Facts(*slow).family == "embedding"
    assert set(graph.nodes.duration_ns[lookups].tolist()) == {MS / 2}
    others = (graph.nodes.kind == NodeKind.WORK) & ~lookups
    assert (graph.nodes.duration_ns[others] == slow[1].nodes.duration_ns[others]).all()


def test_batch_doubles_work_beyond_the_floor_but_no_optimizer_and_no_all_reduce(run: Run) -> None:
    graph, facts = edited(run, "batch=2"), Facts(*run)
    gemm = facts.family == "gemm"
    assert graph.nodes.duration_ns[gemm] == pytest.approx(2 * run[1].nodes.duration_ns[gemm] - 3 * US)
    optimizer = facts.family == "optimizer"
    assert optimizer.any()
    assert (graph.nodes.duration_ns[optimizer] == 2 * MS).all()
    assert transfers(run, graph, "all_to_all", "forward") == {KJT_NS + 2 * PAYLOAD_NS}
    assert transfers(run, graph, "all_reduce", "backward") == {ALL_REDUCE_NS}


def test_balance_evens_lookups_and_uneven_exchanges() -> None:
    uneven = replace(POOLED_A2A, per_rank=(2_000_000, 1_000_000, 500_000, 500_000))
    even = [one for one in DEFAULT_COLLECTIVES if one.phase != "forward"]
    late = (
        Late(0, 4 * MS, phases=("forward",)),
        *(Late(rank, MS, phases=("forward",)) for rank in (1, 2, 3)),
    )
    trace_set = load(JobBuilder(collectives=(uneven, *even), late=late).build())
    heavy = trace_set, graph_of(trace_set)
    graph = edited(heavy, "balance")
    lookups = Facts(*heavy).family == "embedding"
    assert graph.nodes.duration_ns[lookups] == pytest.approx(np.full(lookups.sum(), 7 * MS / 4))
    assert transfers(heavy, graph, "all_to_all", "forward") == {KJT_NS + PAYLOAD_NS // 2}  # mean 1 M of 2 M


def with_plan(trace_set: TraceSet, read: dict[str, dict[int, int]], **plan: object) -> TraceSet:
    """Tables of equal width; ``read``: table -> rank -> bytes its shard there reads per step."""
    shards = {
        name: {"shards": [{"rank": rank, "rows": [0, 100], "columns": [0, 8]} for rank in owners]} | plan
        for name, owners in read.items()
    }
    counts = {
        name: {
            str(rank): {"ids_per_step": size, "read_bytes_per_step": size, "returned_bytes_per_step": 0}
            for rank, size in owners.items()
        }
        for name, owners in read.items()
    }
    return replace(trace_set, manifest={"sharding_plan": shards, "measured_tables": {"tables": counts}})


# Rank 0 owns 6 + 2, the others 2 each: 8 of a mean of 3.5. Moving the 2 makes it 6, 4, 2 and 2.
UNEVEN = {"a": {0: 600}, "b": {0: 200}, "c": {1: 200}, "d": {2: 200}, "e": {3: 200}}


def heavy_run() -> Run:
    lookup_ns = (4 * MS, MS, MS, MS)
    late = tuple(Late(rank, length, phases=("forward",)) for rank, length in enumerate(lookup_ns))
    trace_set = load(JobBuilder(late=late).build())
    return trace_set, graph_of(trace_set)


def test_balance_reaches_what_a_placement_of_the_shards_reaches() -> None:
    trace_set, built = heavy_run()
    planned = with_plan(trace_set, UNEVEN), built
    graph = edited(planned, "balance")
    lookups = Facts(*planned).family == "embedding"
    lengths = {
        rank: set((graph.nodes.duration_ns[lookups & (graph.nodes.rank == rank)] / MS).tolist())
        for rank in range(4)
    }
    assert lengths[0] == {4 * 600 / 800}
    assert sorted(min(one) for one in lengths.values()) == [1, 1, 2, 3]
    said = Balance().explain(Facts(*planned)).detail
    assert said is not None
    assert "measured bytes" in said
    assert "2.29x the mean today" in said  # 8 / 3.5
    assert "1.71x after 1 of 5 shards have moved" in said  # 6 / 3.5


def test_balance_without_a_plan_takes_the_mean_and_says_so() -> None:
    said = Balance().explain(Facts(*heavy_run()))
    assert said.detail is not None
    assert "taken to reach the mean" in said.detail
    assert said.uncertainty is not None
    assert said.uncertainty > Balance().uncertainty


@pytest.mark.parametrize(
    ("read", "plan"),
    [
        ({"a": {0: 600}, "c": {1: 200}, "d": {2: 200}, "e": {3: 200}}, {}),
        (UNEVEN, {"sharding_type": "row_wise"}),
    ],
)
def test_balance_moves_whole_shards_and_only_those_that_can_move(
    read: dict[str, dict[int, int]], plan: dict[str, object]
) -> None:
    trace_set, built = heavy_run()
    with pytest.raises(NotApplicableError, match="no other placement"):
        edited((with_plan(trace_set, read, **plan), built), "balance")


def test_no_straggler_takes_the_excess_out_of_the_ranks_own_time() -> None:
    trace_set = load(JobBuilder(late=(Late(2, 5 * MS, phases=("forward",)),)).build())
    late = trace_set, graph_of(trace_set)
    graph = edited(late, "no-straggler=2")
    changed = np.flatnonzero(graph.nodes.duration_ns != late[1].nodes.duration_ns)
    assert set(graph.nodes.rank[changed].tolist()) == {2}
    taken = (late[1].nodes.duration_ns - graph.nodes.duration_ns).sum()
    assert taken == pytest.approx(4 * 5 * MS, rel=0.02)  # four steps


def test_fuse_shrinks_small_kernels_only() -> None:
    trace_set = load(JobBuilder(pieces=200, forward_ns=(2 * MS, 4 * US)).build())
    many = trace_set, graph_of(trace_set)
    graph, before = edited(many, "fuse"), many[1].nodes.duration_ns
    changed = graph.nodes.duration_ns != before
    assert changed.any()
    assert (before[changed] < 20 * US).all()
    assert (graph.nodes.duration_ns[changed] == before[changed] / 2).all()
    assert not (changed & (Facts(*many).family == "gemm")).any()


SMALL = "void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float> >"


@pytest.mark.parametrize(
    "name",
    [
        "triton_poi_fused_add_mul_0",
        "triton_red_fused__to_copy_native_layer_norm_3",
        "void at::native::multi_tensor_apply_kernel<TensorListMetadata<4>, FusedAdamMathFunctor<float> >",
        "CudaCodeGen::nvfuser_pointwise_f0_c1_r0_g0",
        "ba_plus_cAA_kernel",
    ],
)
def test_fuse_leaves_what_is_fused_and_what_it_does_not_know(name: str) -> None:
    with pytest.raises(NotApplicableError, match=r"fused"):
        edited(small_kernels(name), "fuse")


def test_fuse_leaves_copies() -> None:
    rows = [launched(copy("Memcpy DtoD (Device -> Device)", 14 * US, 17 * US, 1), 10 * US, "cudaMemcpyAsync")]
    with pytest.raises(NotApplicableError, match="no small kernel"):
        edited(assembled(recording(step(0, 0, MS), rows, backend="nccl", world_size=1)), "fuse")


def small_kernels(name: str = SMALL) -> Run:
    """Nine launches 8 us apart, then one after 500 us of something else; the device is never behind."""
    moments = [10 * US + 8 * US * at for at in range(9)]
    moments.append(moments[-1] + 500 * US)
    rows = [
        launched(kernel(f"{name}{at}", moment + 4 * US, moment + 7 * US, at + 1), moment)
        for at, moment in enumerate(moments)
    ]
    return assembled(recording(step(0, 0, MS), rows, backend="nccl", world_size=1))


def test_fuse_takes_launches_out_of_the_hosts_time_and_nothing_else() -> None:
    run = small_kernels()
    before, after = starts(*run), starts(run[0], edited(run, "fuse"))
    kept = 1 / 4
    assert before[0, f"{SMALL}8"] - before[0, f"{SMALL}0"] == 8 * 8 * US
    assert after[0, f"{SMALL}8"] - after[0, f"{SMALL}0"] == pytest.approx(8 * 8 * US * kept)
    # Of the long gap only the usual 8 us are the launch's.
    assert after[0, f"{SMALL}9"] - after[0, f"{SMALL}8"] == pytest.approx(500 * US - 8 * US * (1 - kept))


def test_overlap_lets_the_other_exchanges_pass_and_keeps_its_own_in_order() -> None:
    slow = tuple(
        replace(one, transfer_ns=2 * MS) if one.phase == "sparse_data_dist" else one
        for one in DEFAULT_COLLECTIVES
    )
    trace_set = load(JobBuilder(collectives=slow).build())
    late = trace_set, graph_of(trace_set)
    graph = edited(late, "overlap=sparse_data_dist")
    chosen = Facts(trace_set, graph).of_collectives(
        NodeKind.TRANSFER, lambda one: one.phase == "sparse_data_dist"
    )
    moments = replay(graph)
    own = [moments[chosen & (graph.nodes.rank == rank)] for rank in range(4)]
    assert all((np.diff(one) >= 2 * MS).all() for one in own)
    length = [step_length_ns([one], [replay(one)]) for one in (late[1], graph)]
    assert length[0] - length[1] == pytest.approx(2 * MS, rel=0.02)


NOT_HERE = {
    "no-host-stall": JobBuilder(gpu=False),
    "batch=2": JobBuilder(gpu=False),
    "network=10": DEFAULT,  # no manifest: which ranks share a node is unknown
    "overlap=forward": JobBuilder(collectives=DEFAULT_COLLECTIVES[2:]),
    "no-straggler=9": DEFAULT,
    "narrow=2": JobBuilder(collectives=DEFAULT_COLLECTIVES[3:]),
    "qcomms=fp8": JobBuilder(collectives=DEFAULT_COLLECTIVES[3:]),
    "balance": DEFAULT,
    "fuse": DEFAULT,
    "nodes=2": JobBuilder(collectives=()),
    "2d=3": DEFAULT,  # 4 ranks
    "2d=4": DEFAULT,  # one group is what there is
    "2d=2": JobBuilder(collectives=DEFAULT_COLLECTIVES[3:]),
}


@pytest.mark.parametrize("text", NOT_HERE)
def test_an_edit_that_means_nothing_says_why(text: str) -> None:
    trace_set = load(NOT_HERE[text].build())
    with pytest.raises(NotApplicableError, match=r"\w+ \w+"):
        edited((trace_set, graph_of(trace_set)), text)


def with_nodes(trace_set: TraceSet, hardware: dict[str, Any] | None = None) -> TraceSet:
    nodes = [{"node": node, "ranks": [2 * node, 2 * node + 1]} for node in range(2)]
    return replace(trace_set, manifest={"nodes": nodes, "hardware": hardware or {}})


def test_network_sets_the_bandwidth_of_what_crosses_nodes(run: Run) -> None:
    """4 MB per rank, half of it to the other node over half of 40 GB/s: 100 us beyond the latency."""
    trace_set = with_nodes(run[0])
    graph = edited((trace_set, run[1]), "network=40")
    assert transfers(run, graph, "all_to_all", "forward") == {KJT_NS + 100 * US}
    # 8 MB all-reduced: 2 * 3/4 of it over the whole node. Of the 30 us latency 2 are the peer's in the node
    # and 14 each of the two others'; the all-reduce has two hops of each kind.
    assert transfers(run, graph, "all_reduce", "backward") == {2 * (2 + 14) * US + 300 * US}


def test_of_two_networks_the_last_one_counts(run: Run) -> None:
    named = with_nodes(run[0], {"network": "ib_hdr"}), run[1]
    for last in ("network=ib_ndr", "network=tcp_100g"):  # one faster than the first, one slower
        twice = parse_edit(last).apply(first := edited(named, "network=efa_p4d"), Facts(named[0], first))
        for kind in (("all_to_all", "forward"), ("all_reduce", "backward")):
            assert transfers(run, twice, *kind) == transfers(run, edited(named, last), *kind)
    with pytest.raises(NotApplicableError, match="as fast already"):
        parse_edit("network=efa_p4d").apply(first, Facts(named[0], first))


def test_a_network_that_is_there_already_is_no_change(run: Run) -> None:
    """2 MB of 4 leave the node in 70 us: 28.6 GB/s per rank, 57 per node of two."""
    on_p4d = with_nodes(run[0], {"network": "efa_p4d"}), run[1]  # usually 30 GB/s
    with pytest.raises(NotApplicableError, match=r"on efa_p4d already, with \d+(\.\d+)? GB/s per node"):
        edited(on_p4d, "network=efa_p4d")
    on_xdr = (
        with_nodes(run[0], {"network": "ib_xdr"}),
        run[1],
    )  # usually far more: the path is not what it could be
    edited(on_xdr, "network=ib_xdr")


def test_network_is_no_faster_than_the_links_inside_a_node(run: Run) -> None:
    graph = edited((with_nodes(run[0]), run[1]), "network=100000")
    inside_ns = 4_000_000 / 4 / (300 * 0.7)  # one quarter to the other GPU of the node, over an A100's NVLink
    assert transfers(run, graph, "all_to_all", "forward") == {round(KJT_NS + inside_ns)}


def test_network_changes_latency_by_the_table_when_both_networks_are_in_it(run: Run) -> None:
    """Two peers on the other node, 5 us each before and 4 us then; 2 MB over half of 400 GB/s at 85 %."""
    graph = edited((with_nodes(run[0], {"network": "ib_hdr"}), run[1]), "network=ib_ndr")
    assert transfers(run, graph, "all_to_all", "forward") == {round(KJT_NS - 2 * US + 2_000_000 / 170)}


@pytest.mark.parametrize("count", [1, 7, 8, 9, 24])
def test_ranks_that_need_not_exist_fill_nodes_like_those_that_do(count: int) -> None:
    links = Links(8, True, None, None, 0.0, 0.0, 0.0)
    assert links.nodes_of(range(count)) == links.nodes_of(list(range(count)))
    assert sum(links.nodes_of(range(count))) == count


# 2D ------------------------------------------------------------------------------------------------------


TABLES = [{"name": "t", "rows": 1_000_000, "dim": 100}]  # 400 MB in FP32


def test_2d_keeps_exchanges_inside_the_node(run: Run) -> None:
    """Groups of two: 2 MB to the one peer over 300 GB/s at 70 %, and one message of 2 us.

    The 30 us latency are 2 us inside the node, 2 x 5 us outside (ib_hdr), and 18 us whatever the peers.
    """
    trace_set = with_nodes(run[0], {"network": "ib_hdr"})
    graph = edited((trace_set, run[1]), "2d=2")
    assert transfers(run, graph, "all_to_all", "forward") == {round(20 * US + 2_000_000 / 210)}
    assert transfers(run, graph, "all_to_all", "sparse_data_dist") == {20 * US}  # the quickest: all latency
    assert transfers(run, graph, "all_reduce", "backward") == {ALL_REDUCE_NS}


def test_2d_waits_for_the_ranks_of_the_group_only() -> None:
    """Rank 3 is 4 ms late to every exchange: then rank 2 waits for it, and ranks 0 and 1 do not."""
    late = tuple(replace(one, overlapped=False) for one in DEFAULT_COLLECTIVES[:3])
    trace_set = load(
        JobBuilder(collectives=late, late=(Late(3, 4 * MS, phases=("forward",)),), steps=2).build()
    )
    one_group = with_nodes(trace_set), graph_of(trace_set)
    graph = edited(one_group, "2d=2")
    moments = replay(graph)
    chosen = Facts(trace_set, graph).of_collectives(
        NodeKind.TRANSFER, lambda one: one.phase == "forward" and one.step == graph.steps[0]
    )
    begun = {rank: float(moments[chosen & (graph.nodes.rank == rank)][0]) for rank in range(4)}
    assert begun[0] == begun[1]
    assert begun[2] == begun[3] == pytest.approx(begun[0] + 4 * MS, rel=0.01)


def test_2d_gives_a_rank_the_lookups_of_its_place_in_every_group() -> None:
    """Rank 0 gets five times the ids of the others, and rank 3 is slow with as many as they have."""
    lookup_ns = (5 * MS, MS, MS, 2 * MS)
    late = tuple(Late(rank, length, phases=("forward",)) for rank, length in enumerate(lookup_ns))
    ids = replace(DEFAULT_COLLECTIVES[0], per_rank=(5_000, 1_000, 1_000, 1_000))
    trace_set = load(JobBuilder(late=late, collectives=(ids, *DEFAULT_COLLECTIVES[1:])).build())
    heavy = with_nodes(trace_set), graph_of(trace_set)
    graph = edited(heavy, "2d=2")
    lookups = Facts(*heavy).family == "embedding"
    for rank, expected in ((0, 3 * MS), (1, MS), (2, 3 * MS), (3, 2 * MS)):  # ranks 0 and 2: (5 + 1) / 2
        mine = lookups & (graph.nodes.rank == rank)
        assert set(graph.nodes.duration_ns[mine].tolist()) == {expected}


def test_2d_syncs_what_each_rank_owns_where_the_plan_says(run: Run) -> None:
    """Ranks 0 and 2 own 300 MB and 20 MB, their replicas hold all of it; ranks 1 and 3 own 40 MB each."""
    columns, rows = [0, 100], {0: 750_000, 1: 100_000, 2: 50_000, 3: 100_000}
    shards = [{"rank": rank, "rows": [0, count], "columns": columns} for rank, count in rows.items()]
    manifest = {**(with_nodes(run[0]).manifest or {}), "sharding_plan": {"t": {"shards": shards}}}
    facts = Facts(replace(run[0], manifest=manifest), run[1])
    assert owned_bytes(facts, 2) == {0: 320e6, 1: 80e6}
    assert owned_bytes(Facts(replace(run[0], manifest={"tables": TABLES}), run[1]), 2) == {0: 200e6, 1: 200e6}
    assert owned_bytes(Facts(*run), 2) is None


def test_2d_lets_a_replica_sync_hold_up_what_follows_the_optimizer(run: Run) -> None:
    """200 MB per rank all-reduced with the replica on the other node, as fast as the exchange."""
    trace_set = with_nodes(run[0], {"network": "ib_hdr"})
    trace_set = replace(trace_set, manifest={**(trace_set.manifest or {}), "tables": TABLES})
    graph = edited((trace_set, run[1]), "2d=2,sync=3")
    assert graph.sync is not None
    assert graph.sync.every == 3
    share_gbps = (4_000_000 / 2) / (A2A_NS - KJT_NS)
    latency_ns = 18 * US + 2 * 5 * US
    held_by = np.flatnonzero(graph.sync.held_ns)
    assert graph.sync.held_ns[held_by] == pytest.approx(latency_ns + 200_000_000 / share_gbps)
    assert len(held_by) == 4 * 4  # ranks and steps
    assert (Facts(*run).family[held_by] == "optimizer").all()


def test_2d_says_what_it_assumed(run: Run) -> None:
    blind = ShardingGroups(2).explain(Facts(*run))
    assert blind.detail is not None
    assert "8 ranks per node assumed" in blind.detail
    assert "sync not included" in blind.detail
    assert blind.uncertainty is not None
    assert blind.uncertainty > ShardingGroups(2).uncertainty
    large = [TABLES[0] | {"rows": 1_000_000_000}]
    told = replace(run[0], manifest={**(with_nodes(run[0]).manifest or {}), "tables": large})
    said = ShardingGroups(2).explain(Facts(told, run[1]))
    assert said.detail is not None
    assert "a rank's tables take 200 GB" in said.detail
    assert "more than the GPU's 85 GB" in said.detail
    assert said.uncertainty is None


# More nodes ----------------------------------------------------------------------------------------------


def test_nodes_sends_more_of_the_same_bytes_off_the_node_to_more_peers(run: Run) -> None:
    """From 2 nodes of 2 to 4: 6/8 of the bytes leave the node instead of 2/4, six peers there instead of two.

    Of the 30 us latency 18 are whatever the peers. An all-reduce moves 2 * 7/8 of its size instead of
    2 * 3/4, in two hops and two times two instead of one of each.
    """
    trace_set = with_nodes(run[0], {"network": "ib_hdr"})
    graph = edited((trace_set, run[1]), "nodes=4")
    exchange_ns = (18 + 2 + 6 * 5) * US + PAYLOAD_NS * (6 / 8) / (2 / 4)
    assert transfers(run, graph, "all_to_all", "forward") == {round(exchange_ns)}
    before_ns, after_ns = (18 + 2 * (2 + 5)) * US, (18 + 2 * (2 + 2 * 5)) * US
    reduced_ns = after_ns + (ALL_REDUCE_NS - before_ns) * (7 / 8) / (3 / 4)
    assert transfers(run, graph, "all_reduce", "backward") == {round(reduced_ns)}
    said = MoreNodes(4).explain(Facts(trace_set, run[1]))
    assert said.examples_factor == 2
    assert said.detail is not None
    assert said.detail.startswith("8 ranks instead of 4")


@pytest.mark.parametrize(
    ("tables", "pieces", "table_bytes", "busier"),
    [
        (12, 1, 4_000_000 / 3, 4 / 3),  # 3 to a rank today; of 8 ranks some have 2, the mean is 1.5
        (16, 1, 1_000_000, 1),  # 4 to a rank, then 2
        (12, 1, 2_000_000, 1),  # their 6 MB of a rank are not what the exchange moves
        (3, 4, 16_000_000 / 3, 1),  # a piece on each rank
    ],
)
def test_nodes_spreads_whole_tables_as_far_as_they_divide(
    run: Run, tables: int, pieces: int, table_bytes: float, busier: float
) -> None:
    """Each rank puts 4 MB of vectors into the exchange: those of its tables."""
    owners = {f"t{at}": [(at + piece) % 4 for piece in range(pieces)] for at in range(tables)}
    shards = {
        name: {"shards": [{"rank": rank, "rows": [0, 100], "columns": [0, 8]} for rank in ranks]}
        for name, ranks in owners.items()
    }
    size = round(table_bytes / pieces)
    counted = {"ids_per_step": 1, "read_bytes_per_step": size, "returned_bytes_per_step": size}
    measured = {name: {str(rank): counted for rank in ranks} for name, ranks in owners.items()}
    trace_set = with_nodes(run[0], {"network": "ib_hdr"})
    plan = {"sharding_plan": shards, "measured_tables": {"tables": measured}}
    planned = replace(trace_set, manifest={**(trace_set.manifest or {}), **plan})
    graph = edited((planned, run[1]), "nodes=4")
    exchange_ns = (18 + 2 + 6 * 5) * US + PAYLOAD_NS * (6 / 8) / (2 / 4) * busier
    assert transfers(run, graph, "all_to_all", "forward") == {round(exchange_ns)}


def test_nodes_leaves_exchanges_that_stay_in_their_groups(run: Run) -> None:
    trace_set = with_nodes(run[0], {"network": "ib_hdr"})
    grouped = edited((trace_set, run[1]), "2d=2")
    graph = edited((trace_set, grouped), "nodes=4")
    for phase in ("sparse_data_dist", "forward", "backward"):
        assert transfers(run, graph, "all_to_all", phase) == transfers(run, grouped, "all_to_all", phase)
    assert max(transfers(run, graph, "all_reduce", "backward")) > ALL_REDUCE_NS
    with pytest.raises(NotApplicableError, match="groups of 2 ranks already"):
        edited((trace_set, grouped), "2d=2")


def test_nodes_from_one_node_needs_the_name_of_the_network(run: Run) -> None:
    """4 ranks in one node: the exchange keeps its 4 MB, of which half then go to the other node."""
    alone = {"nodes": [{"node": 0, "ranks": [0, 1, 2, 3]}]}
    with pytest.raises(NotApplicableError, match="network is not known"):
        edited((replace(run[0], manifest=alone), run[1]), "nodes=2")
    named = replace(run[0], manifest=alone | {"hardware": {"network": "ib_hdr"}})
    graph = edited((named, run[1]), "nodes=2")
    # 30 us are three messages of 2 us and 24; then there are four more of 5 us. 200 GB/s for 4 ranks.
    share_gbps = 200 * 0.85 / 4
    assert transfers(run, graph, "all_to_all", "forward") == {round(50 * US + 2_000_000 / share_gbps)}


# Reading -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("fp8", "there is no edit 'fp8'"),
        ("", "there is no edit ''"),
        ("qcomms", "incomplete"),
        ("qcomms=", "incomplete"),
        ("balance=2", "too much"),
        ("qcomms=fp4", "one of fp16, bf16, fp8, int8"),
        ("narrow=1", "above 1"),
        ("narrow=65", "at most 64"),
        ("narrow=nan", "above 1"),
        ("batch=two", "value must be"),
        ("overlap=optimizer", "one of sparse_data_dist, forward, backward"),
        ("network=0", "GB/s per node from 0.001"),
        ("network=-1", "GB/s per node from 0.001"),
        ("network=1e-300", "GB/s per node from 0.001"),
        ("network=carrier_pigeon", "GB/s per node from 0.001"),
        ("batch=two", "a number above 1"),
        ("no-straggler=a", "a rank from 0"),
        ("no-straggler=-1", "a rank from 0"),
        ("no-straggler=2+", "a rank from 0"),
        ("nodes=0", "number of nodes from 1"),
        ("nodes=1.5", "number of nodes from 1"),
        pytest.param("nodes=" + "9" * 5000, "number of nodes from 1", id="endless nodes"),
        pytest.param("no-straggler=" + "9" * 5000, "a rank from 0", id="endless rank"),
        pytest.param("2d=" + "9" * 5000, "group size from 2", id="endless group"),
        ("2d=1", "group size from 2"),
        ("2d=four", "group size from 2"),
        ("2d=8,sync=0", "sync from 1"),
        ("2d=8,every=2", "<group size>,sync=<n>"),
        ("2d=8,sync=2,sync=3", "<group size>,sync=<n>"),
    ],
)
def test_a_wrong_edit_is_a_usage_error(text: str, said: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_edit(text)
    assert said in str(error.value)


@pytest.mark.parametrize("value", ["inf", "nan"])
def test_a_network_needs_a_finite_bandwidth(value: str) -> None:
    with pytest.raises(UsageError):
        parse_edit(f"network={value}")


@pytest.mark.parametrize("name", EDITS)
def test_every_edit_reads_what_it_writes(name: str) -> None:
    example, _ = EDITS[name]
    written = f"{name}={example}" if example else name
    assert parse_edit(written).text == written
    assert any(line.startswith(written) and line[28:].strip() for line in edit_lines())


def test_straggler_ranks_are_a_set() -> None:
    assert parse_edit("no-straggler=3+1+3").text == "no-straggler=1+3"
