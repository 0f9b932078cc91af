"""Slow link: sockets between CPU ranks carry less than any link of a data centre does.

Detects
    CPU ranks whose host link reached less than ``SLOW_GBPS`` in the kind of exchange that reached most, while
    the link is busy, and communication exposed, for at least ``MIN_SHARE`` of the step window. The rate is
    that of the link, not of a collective: all bytes that cross it over the time it has for them.
Why it costs
    All that the ranks of a host send shares this link. What crosses it takes its bytes over the rate; a rank
    that gets its part first goes on, and then waits for the others at the next collective. So the loss shows
    partly as transfer and partly as waiting, of every exchange at once.
Evidence
    The rate reached, the bytes of a step, and how long they keep the link busy.
Remedy
    Find what holds the link down: a negotiated speed, a shaper, a limit of the container or the machine, the
    wrong interface. Until then fewer bytes help, as other findings name them.
How the gain is predicted
    Replayed with ``USUAL_GBPS`` on the link (`network=<GB/s>`): transfers shrink, and the waiting they cause
    with them. Before that a ceiling: the time the link is busy, less what the usual one needs.
When this is wrong
    Where the hosts' cores are too busy to copy: sockets are served by them, and the link is then not what is
    slow. Such a machine is late with small messages too, which are held against the large ones, and now slow
    now fast, where a link serves at one rate. Where other
    jobs share the link: it is slow for this one, and nothing here can say who fills it.
    Without a layout (run.json) up to eight ranks are taken to share one host, and several hosts' links then
    look faster than they are.
"""

from __future__ import annotations

from traceinsight.advice.exchanges import MIN_SHARE, NO_DEVICE, unsplit
from traceinsight.advice.measurements import Measurements
from traceinsight.advice.nodes import NO_LAYOUT, layout_matters
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
from traceinsight.analyses.host_link import HostLink
from traceinsight.base.statistics import median
from traceinsight.diagnosis import Evidence, Finding, NanosecondRange

SLOW_GBPS = 0.1
"""GB/s per host. A link of 1 Gbit/s, the slowest in use between servers, carries 0.117 GB/s of payload: what
stays below this is no such link, or one that something holds down."""

USUAL_GBPS = 1.25
"""GB/s per host: 10 Gbit/s, the least that hosts in a data centre are connected by today, and about what
sockets inside a host reach."""

GIGABIT_GBPS = 0.125
"""1 Gbit/s in GB/s, which readers know the rate of links in."""


def judge(measurements: Measurements) -> Outcome:
    """Judge the rate that the link of a host reached."""
    if not measurements.partition:
        return NO_DEVICE
    if measurements.device_word == "GPU":
        return Clean("host link: GPUs have links of their own; slow-network-path judges what leaves a node")
    if layout_matters(measurements):
        return NO_LAYOUT
    link = measurements.host_link
    if link is None:
        rows = [row for row in measurements.communication if row.exposed_unsplit_ns]
        if measurements.share(sum(row.exposed_unsplit_ns for row in rows)) >= MIN_SHARE:
            return unsplit(measurements, rows)
        return Clean("host link: no exchange of known size lasts long enough to tell its rate")
    return _judge_rate(measurements, link)


def _judge_rate(measurements: Measurements, link: HostLink) -> Outcome:
    if link.gbps >= SLOW_GBPS:
        return Clean(f"host link: {link.gbps:.3g} GB/s are reached, not below {SLOW_GBPS:g} GB/s")
    share = measurements.share(_lost_ns(measurements, link))
    if share < MIN_SHARE:
        return Clean(
            f"host link: {_rate(link)} are little, but cost {percent(share)} of the step, below "
            f"{percent(MIN_SHARE)}"
        )
    return Found([_finding(measurements, link)])


def _exposed_ns(measurements: Measurements) -> dict[int, float]:
    """Transfer and waiting with nothing computing, by rank."""
    return measurements.per_rank(lambda row: row.exposed_comm_transfer_ns + row.exposed_comm_wait_ns)


def _lost_ns(measurements: Measurements, link: HostLink) -> float:
    """What the link costs a step: the time it is busy, but at most what is exposed on the median rank."""
    return min(link.busy_ns, median(list(_exposed_ns(measurements).values())))


def _rate(link: HostLink) -> str:
    return f"{link.gbps * 1e3:.3g} MB/s"


def _finding(measurements: Measurements, link: HostLink) -> Finding:
    lost_ns, exposed = _lost_ns(measurements, link), _exposed_ns(measurements).values()
    share = measurements.share(lost_ns)
    saved = 1 - link.gbps / USUAL_GBPS
    return Finding(
        rule=RULE.id,
        severity=severity_of(share),
        confidence="high" if len(measurements.run.steps) > 1 else "medium",
        title=(
            f"The link between the ranks is slow: {_rate(link)} per host, "
            f"{percent(link.gbps / GIGABIT_GBPS)} of 1 Gbit/s; it costs {percent(share)} of the step"
        ),
        ranks=list(measurements.run.ranks),
        evidence=[
            share_evidence("link_cost", share, "of the step window, transfer and the waiting it causes"),
            Evidence(metric="link_rate", value=link.gbps, unit="GB/s", where="per host, best kind"),
            Evidence(metric="link_busy", value=link.busy_ns, unit="ns", where="per step, bytes / rate"),
            Evidence(
                metric="link_payload", value=link.bytes_per_step, unit="bytes", where="per host and step"
            ),
        ],
        gain=ceiling(
            measurements.step_ns,
            NanosecondRange(
                low=round(saved * min(link.busy_ns, *exposed)),
                expected=round(saved * lost_ns),
                high=round(saved * min(link.busy_ns, max(exposed))),
            ),
        ),
        action=(
            "Look at the link before anything else: its speed (ethtool <interface>), shapers (tc qdisc "
            "show), bandwidth limits of the container, the virtual machine or the switch port, and whether "
            "GLOO_SOCKET_IFNAME names the interface meant. Measure it without the job: iperf3 between two "
            "hosts. If it cannot be faster, send fewer bytes, as other findings say."
        ),
        quality_risk="None: the same bytes arrive sooner.",
        edits=[f"network={USUAL_GBPS:g}"],
    )


RULE = Rule("slow-link", "The link between CPU ranks carries too little", judge)
