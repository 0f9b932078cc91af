"""NCCL sockets: nodes have nothing but TCP, and NCCL uses few sockets of it.

Detects
    Exposed transfer of collectives that cross nodes, at least ``MIN_SHARE`` of the step window, on a network
    without OS bypass (by the manifest), while the best kind of them reaches less than
    ``REACHABLE_SHARE`` of its line rate and the environment does not raise NCCL's sockets.
Why it costs
    One TCP connection is copied by one CPU core and held by its congestion window: it fills a fraction of a
    modern adapter. Several threads with several sockets each fill the rest.
Evidence
    Bandwidth between nodes as reached and as the line has it; the number of sockets per connection.
Remedy
    NCCL_SOCKET_NTHREADS and NCCL_NSOCKS_PERTHREAD, their product at most ``MAX_SOCKETS``.
How the gain is predicted
    Replayed with ``REACHABLE_SHARE`` of the line rate between nodes (`network=<GB/s>`). Before that a
    ceiling: the part of the exposed transfer that this removes.
When this is wrong
    Where hosts have no core to spare for the threads, or where the line is shared with other jobs. With an
    adapter of 100 Gbit/s or more the fast path comes first: see `slow-network-path`.
"""

from __future__ import annotations

from traceinsight.advice.exchanges import below_stake, exchanges_of, exposed_ns, freed
from traceinsight.advice.measurements import Measurements
from traceinsight.advice.nodes import NO_LAYOUT, best_node_gbps, layout_matters, off_node_rows
from traceinsight.advice.rule import (
    Clean,
    Found,
    Outcome,
    Rule,
    ceiling,
    percent,
    severity_of,
    share_evidence,
)
from traceinsight.advice.rules.comm.slow_network_path import SLOWEST_BYPASS_GBPS
from traceinsight.base.hardware import NETWORKS, is_sockets
from traceinsight.diagnosis import CommunicationRow, Evidence, Finding

REACHABLE_SHARE = 0.7
"""Share of the line rate that several sockets together reach on adapters of up to 50 Gbit/s, an assumption:
headers take 5 %, and the copying threads take turns with the rest of the host."""

MAX_SOCKETS = 64
"""Sockets per connection: NCCL's documented limit of threads times sockets per thread."""

TUNED_SOCKETS = 8
"""Sockets per connection. From there on more of them are not the missing piece."""


def judge(measurements: Measurements) -> Outcome:
    """Judge what sockets reach, where they are all there is."""
    what = "sockets between nodes"
    network = measurements.job.network
    if measurements.partition and (network is None or not _only_sockets(network)):
        return Clean(f"{what}: no network is named that has only them")
    if measurements.partition and layout_matters(measurements):
        return below_stake(measurements, exchanges_of(measurements), "all-to-all") or NO_LAYOUT
    rows = off_node_rows(measurements, measurements.communication)
    if (settled := below_stake(measurements, rows, what)) is not None:
        return settled
    return _judge_sockets(measurements, rows)


def _judge_sockets(measurements: Measurements, rows: list[CommunicationRow]) -> Outcome:
    what, network = "sockets between nodes", measurements.job.network
    line, reached = NETWORKS[network or ""].node_gbps, best_node_gbps(measurements)
    if reached is None:
        return Clean(f"{what}: no collective of known size is large enough to measure bandwidth by")
    if reached >= REACHABLE_SHARE * line:
        return Clean(f"{what}: {percent(reached / line)} of the line rate is reached")
    if (sockets := _sockets(measurements)) is not None and sockets >= TUNED_SOCKETS:
        return Clean(f"{what}: already {sockets} per connection")
    return Found([_finding(measurements, rows, reached, line)])


def _only_sockets(network: str) -> bool:
    return is_sockets(network) and NETWORKS[network].node_gbps < SLOWEST_BYPASS_GBPS


def _sockets(measurements: Measurements) -> int | None:
    """Threads times sockets per thread as set; None when neither is."""
    names = ("NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD")
    texts = [measurements.job.environment.get(name, "") for name in names]
    numbers = [int(text) if text.isascii() and text.isdecimal() and len(text) < 4 else None for text in texts]
    if numbers == [None, None]:
        return None
    return (numbers[0] or 1) * (numbers[1] or 1)


def _finding(
    measurements: Measurements, rows: list[CommunicationRow], reached: float, line: float
) -> Finding:
    share = measurements.share(exposed_ns(measurements, rows))
    sockets = _sockets(measurements)
    return Finding(
        rule=RULE.id,
        severity=severity_of(share),
        confidence="low",
        title=(
            f"Sockets fill {percent(reached / line)} of the network: {percent(share)} of the step is exposed "
            "transfer between nodes"
        ),
        ranks=list(measurements.run.ranks),
        evidence=[
            share_evidence("exposed_off_node", share, "of the step window, mean over ranks"),
            Evidence(metric="node_bandwidth", value=reached, unit="GB/s", where="leaving a node, best kind"),
            Evidence(metric="line_rate", value=line, unit="GB/s", where="of a node"),
            *(
                [Evidence(metric="sockets", value=sockets, unit="count", where="per connection, as set")]
                if sockets is not None
                else []
            ),
        ],
        gain=ceiling(
            measurements.step_ns,
            freed(measurements, exposed_ns(measurements, rows) * (1 - reached / (REACHABLE_SHARE * line))),
        ),
        action=(
            "Set NCCL_SOCKET_NTHREADS=4 and NCCL_NSOCKS_PERTHREAD=4 (their product at most "
            f"{MAX_SOCKETS}), NCCL_SOCKET_IFNAME to the fastest interface, and try larger values with "
            "nccl-tests' alltoall_perf. Leave cores free for the threads."
        ),
        quality_risk="None: the same bytes arrive sooner.",
        edits=[f"network={REACHABLE_SHARE * line:.4g}"],
    )


RULE = Rule("nccl-sockets", "NCCL uses too few sockets of a TCP network", judge)
