"""The link of a host, by arithmetic: bytes that cross it over the time it has for them."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MS
from tests.trace.recordings import mark, operator, recording, step
from traceinsight.analyses.host_link import TELLING_NS, HostLink, host_link
from traceinsight.base.intervals import measure
from traceinsight.trace.assemble import assemble
from traceinsight.trace.rank_trace import RankCollective
from traceinsight.trace.trace_set import MatchedCollective, TraceSet

MB = 1_000_000
ONE = "all_to_all"


@pytest.fixture(scope="module")
def job() -> TraceSet:
    """Two CPU ranks of two steps; what they exchange is put in by each test."""
    ranks = [
        recording(
            step(0, 0, 400 * MS), operator("aten::mm", 0, 400 * MS),
            step(1, 400 * MS, 800 * MS), operator("aten::mm", 400 * MS, 800 * MS),
            mark("gloo:all_to_all", 1 * MS, 2 * MS, lane="worker"),
            rank=rank, world_size=2, backend="gloo",
        )
        for rank in (0, 1)
    ]  # fmt: skip
    return assemble(ranks)


def collective(
    arrivals_ms: Sequence[float],
    end_ms: float,
    size: int | None,
    *,
    operation: str = ONE,
    number: int = 0,
    phase: str = "forward",
) -> MatchedCollective:
    """Every rank puts in ``size`` bytes; all end together."""
    ranks = tuple(range(len(arrivals_ms)))
    part = RankCollective(
        event=0, lane=0, operation=operation, label=None, phase=phase, step=number, start_ns=0, end_ns=0,
        launch_ns=0, group=ranks, group_size=len(ranks), group_name=None, sequence=None, in_bytes=size,
        out_bytes=size, in_split=None, out_split=None, dtype=None,
    )  # type: ignore[arg-type] # fmt: skip
    return MatchedCollective(
        operation=operation, label=None, phase=part.phase, step=number, group=ranks, ranks=ranks,
        members=(part,) * len(ranks), starts_ns=tuple(round(at * MS) for at in arrivals_ms),
        ends_ns=(round(end_ms * MS),) * len(ranks), absent_ranks=(), membership_known=True,
    )  # fmt: skip


def link_of(
    job: TraceSet, *collectives: MatchedCollective, host_of: Mapping[int, int] | None = None
) -> HostLink | None:
    steps = tuple(sorted({one.step for one in collectives}))
    return host_link(replace(job, collectives=collectives, steps=steps), host_of)


def found(
    job: TraceSet, *collectives: MatchedCollective, host_of: Mapping[int, int] | None = None
) -> HostLink:
    link = link_of(job, *collectives, host_of=host_of)
    assert link is not None
    return link


@pytest.mark.parametrize("first_ms", [100, 60, 0])
def test_what_two_ranks_send_each_other_counts_from_the_later_arrival(job: TraceSet, first_ms: float) -> None:
    # Half of what each puts in stays with it: 2 x 1 MB cross in 20 ms. Waiting for a late rank is none.
    link = found(job, collective([first_ms, 100], 120, 2 * MB))
    assert link.gbps == pytest.approx(2 * MB / (20 * MS))
    assert link.bytes_per_step == 2 * MB
    assert link.busy_ns == pytest.approx(20 * MS)
    assert link.busy.tolist() == [[100 * MS, 120 * MS]]


def test_ranks_that_are_there_exchange_before_the_last_one_comes(job: TraceSet) -> None:
    # Messages of 1 MB: 2 cross from the second arrival on, 4 more from the third, 6 from the last. At
    # 0.1 GB/s the first 6 are done at 10 + 60 ms, before the last comes at 80, and its 6 at 140.
    link = found(job, collective([0, 10, 10, 80], 140, 4 * MB))
    assert link.gbps == pytest.approx(0.1)
    assert link.busy.tolist() == [[10 * MS, 70 * MS], [80 * MS, 140 * MS]]


def test_an_unbroken_queue_is_served_at_one_rate(job: TraceSet) -> None:
    # The same messages, the last rank at 30 ms: 12 MB from 10 ms to 130 ms.
    link = found(job, collective([0, 10, 10, 30], 130, 4 * MB))
    assert link.gbps == pytest.approx(0.1)
    assert link.busy.tolist() == [[10 * MS, 130 * MS]]


def test_what_crosses_at_the_same_time_adds_up(job: TraceSet) -> None:
    # 2 MB of the exchange, and of the all-reduce 2 (n-1) x 0.5 MB = 1 MB: 3 MB in 30 ms. Each alone would
    # seem to have a third or two thirds of that rate.
    link = found(
        job,
        collective([0, 0], 30, 2 * MB),
        collective([0, 0], 30, MB // 2, operation="all_reduce", phase="backward"),
    )
    assert link.gbps == pytest.approx(0.1)
    assert link.bytes_per_step == 3 * MB


def test_the_best_kind_counts_and_of_a_kind_the_median(job: TraceSet) -> None:
    steps = [
        [
            collective([at, at], at + forward_ms, 4 * MB, number=number),
            collective([at + 150, at + 150], at + 190, 2 * MB, number=number, phase="backward"),
        ]
        for number, (at, forward_ms) in enumerate([(0, 45), (200, 50), (400, 52)])
    ]
    # Forward 4 MB in 45, 50, 52 ms; backward 2 MB in 40 ms.
    assert found(job, *chain(*steps)).gbps == pytest.approx(4 * MB / (50 * MS))


@pytest.mark.parametrize(("slower_ms", "tells"), [(60, True), (64, False)])
def test_a_link_serves_at_one_rate(job: TraceSet, slower_ms: float, tells: bool) -> None:
    # Of five bouts of 1 MB, three in 50 ms and two slower, the quartiles are these two rates: 60 / 50 = 1.2,
    # 64 / 50 = 1.28.
    bouts = [
        collective([at, at], at + lasts_ms, MB, number=at)
        for at, lasts_ms in [(0, 50), (100, 50), (200, 50), (300, slower_ms), (400, slower_ms)]
    ]
    assert (link_of(job, *bouts) is not None) is tells


@pytest.mark.parametrize(("lasts_ms", "tells"), [(9.9, False), (10, True)])
def test_a_short_exchange_tells_nothing(job: TraceSet, lasts_ms: float, tells: bool) -> None:
    assert TELLING_NS == 10 * MS
    assert (link_of(job, collective([0, 0], lasts_ms, MB)) is not None) is tells


@pytest.mark.parametrize(("small_ms", "tells"), [(2.9, True), (3.1, False)])
def test_where_small_messages_are_late_too_the_machine_is_slow(
    job: TraceSet, small_ms: float, tells: bool
) -> None:
    small = [
        collective([at, at], at + small_ms, 60_000, phase="sparse_data_dist") for at in (100.0, 150.0, 200.0)
    ]
    assert (link_of(job, collective([0, 0], 30, 2 * MB), *small) is not None) is tells


def test_without_sizes_there_is_no_rate(job: TraceSet) -> None:
    assert link_of(job, collective([0, 0], 30, None)) is None
    beside = collective([0, 0], 30, None, operation="all_reduce", phase="backward")
    assert link_of(job, collective([0, 0], 30, 2 * MB), beside) is None


def test_a_rank_that_was_not_captured_leaves_no_rate(job: TraceSet) -> None:
    assert link_of(job, replace(collective([0, 0], 30, 2 * MB), absent_ranks=(2,))) is None


def test_between_hosts_only_what_leaves_one_counts(job: TraceSet) -> None:
    # Four ranks on two hosts, messages of 1 MB: each host sends 2 x 2 of them; 8 of 12 cross, 4 leave each.
    hosts = {0: 0, 1: 0, 2: 1, 3: 1}
    exchange = collective([0, 0, 0, 0], 40, 4 * MB)
    assert found(job, exchange, host_of=hosts).gbps == pytest.approx(0.1)
    assert found(job, exchange).gbps == pytest.approx(0.3)  # all 12 over one loopback
    # A ring passes each byte 2 x 3/4 times over each host's link: 6 MB.
    reduction = collective([0, 0, 0, 0], 60, 4 * MB, operation="all_reduce")
    assert found(job, reduction, host_of=hosts).gbps == pytest.approx(0.1)


@given(
    arrivals=st.lists(st.integers(0, 200), min_size=2, max_size=6),
    lasts_ms=st.integers(11, 300),
    size=st.integers(1, 50),
)
def test_at_the_rate_found_the_last_byte_is_across_at_the_end(
    job: TraceSet, arrivals: list[int], lasts_ms: int, size: int
) -> None:
    end_ms, count = max(arrivals) + lasts_ms, len(arrivals)
    link = link_of(job, collective(arrivals, end_ms, size * MB))
    if link is None:  # so quick that it tells nothing
        return
    # Message by message: at that rate the last is done at the end, and at a little less it is not.
    messages = sorted(max(arrivals[one], arrivals[other]) for one, other in combinations(range(count), 2))
    for rate, in_time in ((link.gbps, True), (link.gbps * 0.99, False)):
        done_ns = 0.0
        for at_ms in messages:
            done_ns = max(done_ns, at_ms * MS) + 2 * size * MB / count / rate
        assert (done_ns <= end_ms * MS + 10) is in_time
    assert link.busy[-1, 1] == pytest.approx(end_ms * MS, abs=10)
    assert measure(link.busy) == pytest.approx(link.busy_ns, abs=10 * count)
