"""What of an exchange's latency belongs to whom. Two nodes of two ranks: one peer inside, two outside."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from traceinsight.base.hardware import NETWORKS
from traceinsight.replay.facts import Facts
from traceinsight.replay.links import Links
from traceinsight.replay.measured_links import LINK_LATENCY_NS, MAX_BASE_NS, _with_latencies

TABLE_NS = NETWORKS["ib_hdr"].latency_us * 1e3


def links(latency_ns: float, *, network_ns: float = TABLE_NS, per_node: int = 2) -> Links:
    quickest = SimpleNamespace(ranks=(0, 1, 2, 3))
    facts: Any = SimpleNamespace(quickest_exchange=quickest, latency_ns=latency_ns)
    return _with_latencies(
        Links(per_node, True, None, None, 0.0, LINK_LATENCY_NS, network_ns), cast("Facts", facts)
    )


def test_what_no_message_takes_is_every_collectives() -> None:
    found = links(30_000.0)
    assert (found.base_ns, found.network_latency_ns) == (30_000 - LINK_LATENCY_NS - 2 * TABLE_NS, TABLE_NS)


def test_beyond_what_a_collective_takes_by_itself_it_is_the_messages_between_nodes() -> None:
    found = links(400_000.0)
    assert found.base_ns == MAX_BASE_NS
    assert found.network_latency_ns == (400_000 - MAX_BASE_NS - LINK_LATENCY_NS) / 2
    assert found.latency_ns("all_to_all", (0, 1, 2, 3)) == pytest.approx(400_000)
    # Inside a node nothing of that is left.
    assert found.latency_ns("all_to_all", (0, 1)) == MAX_BASE_NS + LINK_LATENCY_NS


def test_within_one_node_all_of_it_is_every_collectives() -> None:
    assert links(400_000.0, per_node=4).base_ns == 400_000 - 3 * LINK_LATENCY_NS


def test_what_holds_messages_up_stays_on_another_network() -> None:
    """Twice the table's latency on one network is twice the table's on the other."""
    slow = Links(2, True, None, None, 0.0, LINK_LATENCY_NS, 2 * TABLE_NS, held_up=2.0)
    assert slow.on("tcp_100g").network_latency_ns == 2 * NETWORKS["tcp_100g"].latency_us * 1e3
