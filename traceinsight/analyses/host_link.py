"""How fast the link is that carries what the ranks of a host send, from the collectives themselves.

Ranks that talk through sockets share one link: the host's network, or its loopback where all ranks run on
one host. What several collectives and ranks move at a time adds up on it, so its rate is no collective's bus
bandwidth. The link is taken for a queue that is served at one rate: a byte joins it when both ends of its
message have arrived. The rate reached is then the least one that gets everything across in time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traceinsight.base.intervals import EMPTY, Spans, union
from traceinsight.base.statistics import median, quartile_range
from traceinsight.trace.recording import Int64
from traceinsight.trace.trace_set import MatchedCollective, TraceSet

TELLING_NS = 10_000_000
"""Exchanges below 10 ms say little about bandwidth: processes that share cores may wait some ms for one, and
clocks of ranks are known to 1 or 2 ms."""

TELLING_LATENCIES = 10
"""An exchange must also take so many times what one of at most ``SMALL_BYTES`` takes: on a machine so busy
that every message is late, the machine is what is slow."""

MOST_SPREAD = 1.25
"""Upper over lower quartile of the rates that a kind reached. A link serves at one rate, step after step:
1.03 to 1.07 on shaped ones. Cores that are busy elsewhere serve now fast, now slowly: 1.4 and more."""

SMALL_BYTES = 65_536
"""What crosses even a link of 100 Mbit/s within 5 ms."""


@dataclass(frozen=True, slots=True)
class HostLink:
    """The link of a host.

    ``gbps`` is the rate it reached (GB/s = bytes per ns), ``bytes_per_step`` the median of what crosses it in
    a steady step, ``busy`` when it has something to carry at that rate, on the common clock.
    """

    gbps: float
    bytes_per_step: float
    busy: Spans = field(default_factory=lambda: EMPTY)

    @property
    def busy_ns(self) -> float:
        """What the bytes of a step need at that rate, ns."""
        return self.bytes_per_step / self.gbps


@dataclass(frozen=True, slots=True)
class _Load:
    """What one collective puts on the link: so many bytes at each of these moments; None: size not known."""

    one: MatchedCollective
    ready_ns: Int64
    size: NDArray[np.float64] | None

    @property
    def begin_ns(self) -> int:
        return int(self.ready_ns[0])

    @property
    def end_ns(self) -> int:
        return max(self.one.ends_ns)

    @property
    def bytes(self) -> float:
        return float(self.size.sum()) if self.size is not None else 0.0


def host_link(trace_set: TraceSet, host_of: Mapping[int, int] | None) -> HostLink | None:
    """The link of a host; None where no exchange of known size lasts long enough to tell its rate.

    ``host_of`` is rank -> host; None where all ranks share one.
    """
    loads = [_load(one, host_of) for one in trace_set.collectives if one.synchronising and len(one.ranks) > 1]
    loads = [load for load in loads if load.size is None or load.bytes > 0]
    steady = [load for load in loads if load.one.step in trace_set.steps]
    gbps = _reached(steady)
    if gbps is None:
        return None
    per_step = dict.fromkeys(trace_set.steps, 0.0)
    for load in steady:
        per_step[load.one.step] += load.bytes
    return HostLink(gbps, median(list(per_step.values())), _busy(loads, gbps))


def _load(one: MatchedCollective, host_of: Mapping[int, int] | None) -> _Load:
    order = np.argsort(one.starts_ns, kind="stable")
    arrivals = np.array(one.starts_ns, dtype=np.int64)[order]
    sizes = [part.in_bytes for part in one.members]
    count, hosts = len(sizes), _ranks_of_hosts(one, host_of)
    if not one.complete or None in sizes:
        return _Load(one, arrivals[1:], None)
    if one.operation == "all_to_all":
        sent = np.array(sizes, dtype=np.float64)[order] / count  # to each member
        # The k-th to arrive exchanges messages with each of the k that are there.
        size = (np.cumsum(sent)[:-1] + np.arange(1, count) * sent[1:]) * _leaving_share(hosts)
        return _Load(one, arrivals[1:], size)
    passed = {"all_reduce": 2, "all_gather": 1, "reduce_scatter": 1}.get(one.operation)
    if passed is None:
        return _Load(one, arrivals[1:], None)
    whole = max(max(part.in_bytes or 0, part.out_bytes or 0) for part in one.members)
    # Rings: every part passes all members but one, and of each host's links only the one that leaves it.
    size = np.array([passed * whole * (count - 1) / (count if len(hosts) > 1 else 1)])
    return _Load(one, arrivals[-1:], size)


def _ranks_of_hosts(one: MatchedCollective, host_of: Mapping[int, int] | None) -> list[int]:
    """How many members each host holds."""
    counts: dict[int | None, int] = defaultdict(int)
    for rank in one.ranks:
        counts[host_of.get(rank) if host_of is not None else None] += 1
    return list(counts.values())


def _leaving_share(hosts: Sequence[int]) -> float:
    """Share of all messages between members that leave the host which sends most; 1 where there is one host.

    Of n members, m of them on a host: m (n - m) of n (n - 1) messages.
    """
    members = sum(hosts)
    if len(hosts) == 1:
        return 1.0
    return max(local * (members - local) for local in hosts) / (members * (members - 1))


def _reached(loads: Sequence[_Load]) -> float | None:
    """The rate of the kind that reached most; of a kind, the median over its bouts, which must agree."""
    small = [_transfer_ns(load) for load in loads if load.size is not None and load.bytes <= SMALL_BYTES]
    least_ns = max(TELLING_NS, TELLING_LATENCIES * median(small) if small else 0.0)
    rates: dict[tuple[object, ...], list[tuple[float, float]]] = defaultdict(list)
    for bout in _bouts(loads):
        largest = max(bout, key=lambda load: load.bytes)
        if largest.bytes > SMALL_BYTES and all(load.size is not None for load in bout):
            rate, total = _rate(bout), sum(load.bytes for load in bout)
            rates[largest.one.operation, largest.one.label, largest.one.phase].append((rate, total / rate))
    telling = [
        median([rate for rate, _ in kind])
        for kind in rates.values()
        if median([lasted_ns for _, lasted_ns in kind]) >= least_ns and _agree([rate for rate, _ in kind])
    ]
    return max(telling, default=None)


def _agree(rates: Sequence[float]) -> bool:
    """Whether these are one rate."""
    low, _, high = quartile_range(rates)
    return high <= MOST_SPREAD * low


def _transfer_ns(load: _Load) -> float:
    return float(max(load.end_ns - load.one.last_arrival_ns, 0))


def _bouts(loads: Iterable[_Load]) -> list[list[_Load]]:
    """Collectives that are under way at the same time, together."""
    found: list[list[_Load]] = []
    until_ns = 0
    for load in sorted(loads, key=lambda load: load.begin_ns):
        if found and load.begin_ns < until_ns:
            found[-1].append(load)
        else:
            found.append([load])
            until_ns = load.end_ns
        until_ns = max(until_ns, load.end_ns)
    return found


def _rate(bout: Sequence[_Load]) -> float:
    """The least rate that carries all by the last end: what joins at a moment or later must fit behind it."""
    ready, size = _queue(bout)
    end = max(load.end_ns for load in bout)
    left = np.cumsum(size[::-1])[::-1]
    return float((left / np.maximum(end - ready, 1)).max())


def _busy(loads: Sequence[_Load], gbps: float) -> Spans:
    """When the queue is not empty."""
    ready, size = _queue([load for load in loads if load.size is not None])
    if not len(ready):
        return EMPTY
    service = size / gbps
    done = np.cumsum(service)
    origin = int(ready[0])
    # Served in order of arrival: each begins at its arrival or at the end of the one before it.
    begin = np.maximum.accumulate((ready - origin) - (done - service)) + (done - service)
    spans = np.rint(np.column_stack((begin, begin + service))).astype(np.int64) + origin
    return union(spans[:, 0], spans[:, 1])


def _queue(loads: Sequence[_Load]) -> tuple[Int64, NDArray[np.float64]]:
    """(moments, bytes that join then), in order of time."""
    sized = [(load.ready_ns, load.size) for load in loads if load.size is not None]
    if not sized:
        return np.empty(0, dtype=np.int64), np.empty(0)
    ready = np.concatenate([moments for moments, _ in sized])
    size = np.concatenate([added for _, added in sized])
    order = np.argsort(ready, kind="stable")
    return ready[order], size[order]
