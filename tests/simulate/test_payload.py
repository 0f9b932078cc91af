"""What goes over the wire, and who owns what."""

from __future__ import annotations

import numpy as np
import pytest

from tests.simulate.specs import two_nodes
from traceinsight.simulate.sharding import partition_shares, shard_tables
from traceinsight.simulate.workload import build_workload, sharding_groups, wire_bytes


def test_fp8_is_a_quarter_of_fp32_plus_the_scales() -> None:
    values = np.array([1_000_000.0 * 128])
    assert wire_bytes(values, "fp32", 128) == 512e6  # the arithmetic of the published case
    assert wire_bytes(values, "fp8", 0) == 128e6
    assert wire_bytes(values, "fp8", 128) == 128e6 + 1_000_000 * 8  # a scale and an offset per row of 128
    assert wire_bytes(values, "int8", 128) == wire_bytes(values, "fp8", 128)
    assert wire_bytes(values, "bf16", 128) == 256e6


def test_the_exchange_moves_batch_times_values_to_every_rank() -> None:
    module = build_workload(two_nodes()).modules[0]
    # 4 tables, one partition of each on each of 8 ranks: 512 examples x 4 vectors x 128 values to each rank
    payload = module.forward.payload
    assert payload.splits is not None
    assert (payload.splits == 512 * 4 * 128).all()
    assert (payload.in_elements == 8 * 512 * 4 * 128).all()
    assert (payload.off_node_bytes == 4 * 512 * 4 * 128 * 4).all()  # to the four ranks of the other node
    assert (module.backward.payload.in_elements == payload.out_elements).all()


def test_qcomms_shrink_only_their_own_direction() -> None:
    plain = build_workload(two_nodes()).modules[0]
    module = build_workload(two_nodes(comms={"qcomms_forward": "fp8", "quantize_row": 0})).modules[0]
    assert module.forward.payload.dtype == "Byte"
    ratio = plain.forward.payload.in_elements * 4 / module.forward.payload.in_elements
    assert (ratio == 4).all()
    assert (module.backward.payload.in_elements == plain.backward.payload.in_elements).all()
    assert module.encode_ns["forward"].min() > 0
    assert module.encode_ns["backward"].max() == 0


def test_narrowing_halves_what_a_lookup_returns_and_keeps_the_weights() -> None:
    wide, narrow = shard_tables(two_nodes()), shard_tables(two_nodes(narrowing=2))
    assert (narrow.modules["ebc"].values_sent * 2 == wide.modules["ebc"].values_sent).all()
    assert narrow.weight_bytes.sum() == wide.weight_bytes.sum()


def test_a_misaligned_partition_count_overloads_the_first_ranks() -> None:
    big = {"partitions_per_rank": 1.25}
    sent = shard_tables(two_nodes(tables={"big": big})).modules["ebc"].values_sent
    # 10 partitions on 8 ranks: ranks 0 and 1 own two of each of the four tables, the others one
    assert sent.tolist() == [8 * 128] * 2 + [4 * 128] * 6


def test_placement_policies() -> None:
    table = {"count": 1, "partitions": 3, "partitions_per_rank": None, "placement": None, "dim": 4}
    tables = {"big": table, "small": {"count": 1, "dim": 64}}
    owners = {
        policy: [
            one.owner for one in shard_tables(two_nodes(tables=tables, placement={"policy": policy})).shards
        ]
        for policy in ("greedy", "round_robin", "modulo")
    }
    assert owners["round_robin"] == [0, 1, 2, 3]
    assert owners["modulo"] == [0, 1, 2, 0]
    assert owners["greedy"] == [1, 2, 3, 0]  # the wide table first
    explicit = two_nodes(tables=tables, placement={"policy": "modulo", "explicit": {"big": [7, 7, 5]}})
    assert [one.owner for one in shard_tables(explicit).shards] == [7, 7, 5, 0]


def test_zipf_ids_fall_unevenly_on_hash_partitions() -> None:
    even = partition_shares(1_000_000, 8, 0.0, (0,))
    skewed = partition_shares(1_000_000, 8, 1.2, (0,))
    assert even.tolist() == [1 / 8] * 8
    assert skewed.sum() == pytest.approx(1.0)
    # the most frequent id alone has 1 / sum(k**-1.2) = 19 % of the lookups
    assert skewed.max() > 0.19
    assert partition_shares(1_000_000, 8, 1.0, (0,)).sum() == pytest.approx(1.0)


def test_groups_of_both_2d_topologies() -> None:
    inside = sharding_groups(two_nodes(two_d={"group_size": 4}))
    assert inside == (((0, 1, 2, 3), (4, 5, 6, 7)), ((0, 4), (1, 5), (2, 6), (3, 7)))
    across = sharding_groups(two_nodes(two_d={"group_size": 4, "inside_node": "all_reduce"}))
    assert across == (((0, 2, 4, 6), (1, 3, 5, 7)), ((0, 1), (2, 3), (4, 5), (6, 7)))


def test_2d_keeps_the_exchange_inside_the_node() -> None:
    inside = build_workload(two_nodes(two_d={"group_size": 4}))
    across = build_workload(two_nodes(two_d={"group_size": 4, "inside_node": "all_reduce"}))
    assert inside.modules[0].forward.payload.off_node_bytes.max() == 0
    assert across.modules[0].forward.payload.off_node_bytes.min() > 0
    assert inside.replica_sync is not None
    assert across.replica_sync is not None
    assert inside.replica_sync.payload.off_node_bytes.min() > 0
    assert across.replica_sync.payload.off_node_bytes.max() == 0
