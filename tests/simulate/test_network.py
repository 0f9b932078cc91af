"""Transfer times of collectives, from the alpha-beta model by hand."""

from __future__ import annotations

import numpy as np
import pytest

from traceinsight.simulate.network import Fabric, all_reduce_ns, all_to_all_ns, fabric_of
from traceinsight.simulate.spec import Cluster

# Two GPUs per node; 100 GB/s = 100 bytes/ns inside a node, 10 outside; 1 us and 20 us per message; 5 us base.
FABRIC = Fabric(2, 100.0, 10.0, 1_000.0, 20_000.0, 5_000.0)


def test_an_exchange_inside_a_node_uses_its_links() -> None:
    size = np.array([[1e6, 2e6], [4e6, 1e6]])
    # what stays on a rank is free; the busiest direction carries 4 MB: 40 us; one peer: 1 us
    assert all_to_all_ns(FABRIC, (0, 1), size) == pytest.approx(5_000 + 1_000 + 40_000)


def test_an_exchange_across_nodes_is_bound_by_the_rank_that_moves_most_off_its_node() -> None:
    size = np.full((4, 4), 1e6)
    size[3, :] = 3e6
    # rank 3 sends 2 x 3 MB off its node: 6 MB / 10 = 600 us. Peers: 1 inside, 2 outside.
    assert all_to_all_ns(FABRIC, (0, 1, 2, 3), size) == pytest.approx(5_000 + 1_000 + 40_000 + 600_000)


def test_the_rank_that_receives_most_counts_as_much() -> None:
    size = np.full((4, 4), 1e6)
    size[3, :] = 3e6
    assert all_to_all_ns(FABRIC, (0, 1, 2, 3), size.T) == all_to_all_ns(FABRIC, (0, 1, 2, 3), size)


def test_a_small_exchange_costs_its_messages() -> None:
    assert all_to_all_ns(FABRIC, tuple(range(8)), np.ones((8, 8))) == pytest.approx(
        5_000 + 1_000 + 6 * 20_000, rel=1e-4
    )


def test_an_all_reduce_inside_a_node_is_a_ring() -> None:
    # 2 (n-1)/n x 8 MB = 8 MB over 100 bytes/ns = 80 us; latency: the tree's 2 hops of 1 us
    assert all_reduce_ns(FABRIC, (0, 1), 8e6) == pytest.approx(5_000 + 2_000 + 80_000)


def test_an_all_reduce_across_nodes_uses_all_adapters_of_a_node() -> None:
    # four ranks on two nodes: 1.5 x 8 MB over 2 adapters of 10 bytes/ns = 600 us; tree: 2 x 1 + 2 x 20 us
    assert all_reduce_ns(FABRIC, (0, 1, 2, 3), 8e6) == pytest.approx(5_000 + 42_000 + 600_000)
    # one rank per node has one adapter: 1 x 8 MB / 10 = 800 us, 2 hops of 20 us
    assert all_reduce_ns(FABRIC, (0, 2), 8e6) == pytest.approx(5_000 + 40_000 + 800_000)


def test_one_rank_has_nothing_to_reduce() -> None:
    assert all_reduce_ns(FABRIC, (0,), 8e6) == 5_000


def test_a_fabric_is_the_datasheet_times_efficiency_shared_by_the_gpus() -> None:
    fabric = fabric_of(Cluster(gpu="A100", network="efa_p4d", link_efficiency=0.5))
    assert fabric.link_gbps == pytest.approx(300 * 0.5)
    assert fabric.share_gbps == pytest.approx(50 * 0.6 / 8)  # 4 x 100 Gbit/s, 60 %, eight GPUs
    assert fabric_of(Cluster(node_gbps=80.0, network_efficiency=1.0)).share_gbps == pytest.approx(10.0)
