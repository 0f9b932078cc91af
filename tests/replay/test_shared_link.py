"""A small collective beside a large exchange on one link, before and after the exchange shrinks."""

from dataclasses import replace

import numpy as np
import pytest

from tests.builders import MS, JobBuilder
from tests.replay.jobs import load
from traceinsight.replay.edits.shared_link import relief_ns
from traceinsight.trace.trace_set import MatchedCollective


@pytest.fixture(scope="module")
def exchange() -> MatchedCollective:
    """An all-to-all of 4 MB per rank, moved here to last from 0 to 40 ms: 0.1 bytes per ns."""
    collectives = load(JobBuilder().build()).collectives
    one = next(one for one in collectives if one.operation == "all_to_all" and one.complete)
    return lasting(one, 0, 40 * MS, 4_000_000)


def lasting(one: MatchedCollective, begin_ns: int, end_ns: int, size_bytes: int | None) -> MatchedCollective:
    members = tuple(replace(member, in_bytes=size_bytes) for member in one.members)
    count = len(one.ranks)
    return replace(one, starts_ns=(begin_ns,) * count, ends_ns=(end_ns,) * count, members=members)


def relief(exchange: MatchedCollective, other: MatchedCollective, shrinks_to: float = 0.25) -> float:
    return float(relief_ns([exchange, other], np.array([shrinks_to, 1.0, 1.0]))[1])


def test_a_starved_collective_gets_back_what_vanishes_beside_it(exchange: MatchedCollective) -> None:
    # 60 kB in 30 ms is 0.002 bytes per ns, a fiftieth of the exchange's rate; it overlaps it for 25 ms, of
    # which three quarters vanish.
    assert relief(exchange, lasting(exchange, 15 * MS, 45 * MS, 60_000)) == 0.75 * 25 * MS


@pytest.mark.parametrize(
    ("begin", "end", "size"),
    [
        (15 * MS, 45 * MS, 1_500_000),  # half the exchange's rate: it gets its share of the link
        (40 * MS, 70 * MS, 60_000),  # after it
        (15 * MS, 45 * MS, None),  # its bytes are not known
    ],
)
def test_others_are_left_alone(exchange: MatchedCollective, begin: int, end: int, size: int | None) -> None:
    assert relief(exchange, lasting(exchange, begin, end, size)) == 0


def test_an_exchange_that_does_not_shrink_gives_nothing_back(exchange: MatchedCollective) -> None:
    assert relief(exchange, lasting(exchange, 15 * MS, 45 * MS, 60_000), shrinks_to=1.0) == 0


def test_no_collectives_no_relief() -> None:
    assert relief_ns([], np.ones(1)).tolist() == [0.0]
