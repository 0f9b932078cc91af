"""Slow network path: collectives between nodes reach a small part of what the nodes' adapters carry.

Detects
    Exposed transfer of collectives that cross nodes, at least ``MIN_SHARE`` of the step window, while the
    best kind of them moves less than ``MAX_LINE_SHARE`` of a node's line rate (of the network the manifest
    names, else of ``SLOWEST_BYPASS_GBPS``).
Why it costs
    Over TCP a few CPU threads copy every byte; an adapter with OS bypass (EFA, InfiniBand) is read and
    written by the GPUs themselves. A job on the wrong path becomes slower with every node it gets.
Evidence
    Bandwidth between nodes as reached and as the adapters have it, the exposed transfer.
Remedy
    Make NCCL take the OS-bypass path: the plugin, its driver, and no setting that forbids it.
How the gain is predicted
    Replayed with the bytes that cross nodes on that network at its usual efficiency (`network=<name>`).
    Before that a ceiling: the exposed transfer that crosses nodes.
When this is wrong
    Where the nodes have no such adapter and the manifest does not name their network. Where many small
    messages are all that crosses nodes, bandwidth says little; kinds that move little are left out.
"""

from __future__ import annotations

from traceinsight.advice.exchanges import NO_DEVICE, below_stake, exchanges_of, exposed_ns, freed
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
from traceinsight.base.hardware import NETWORKS, OS_BYPASS_OF_GPU, gpu_key, is_sockets
from traceinsight.diagnosis import CommunicationRow, Evidence, Finding

MAX_LINE_SHARE = 0.35
"""Share of the line rate. Sockets reach about 25 % of a fast adapter, OS bypass 60 % and more."""

SLOWEST_BYPASS_GBPS = 12.5
"""GB/s per node. The slowest network with OS bypass in use for training (one adapter of 100 Gbit/s)."""

_FORCED = {
    ("NCCL_NET", "socket"): "NCCL_NET=Socket",
    ("NCCL_IB_DISABLE", "1"): "NCCL_IB_DISABLE=1",
    ("FI_PROVIDER", "tcp"): "FI_PROVIDER=tcp",
    ("FI_PROVIDER", "sockets"): "FI_PROVIDER=sockets",
}


def judge(measurements: Measurements) -> Outcome:
    """Judge the bandwidth between nodes."""
    if not measurements.partition:
        return NO_DEVICE
    if measurements.device_word != "GPU":
        return Clean("network path: CPU ranks use sockets by design; slow-link judges what those carry")
    if layout_matters(measurements):
        settled = below_stake(measurements, exchanges_of(measurements), "all-to-all")
        return settled or NO_LAYOUT
    rows = off_node_rows(measurements, measurements.communication)
    if (settled := below_stake(measurements, rows, "collectives between nodes")) is not None:
        return settled
    return _judge_bandwidth(measurements, rows)


def _judge_bandwidth(measurements: Measurements, rows: list[CommunicationRow]) -> Outcome:
    what = "collectives between nodes"
    reached = best_node_gbps(measurements)
    if reached is None:
        return Clean(f"{what}: none of known size is large enough to measure bandwidth by")
    network = measurements.job.network
    line = NETWORKS[network].node_gbps if network is not None else SLOWEST_BYPASS_GBPS
    if line < SLOWEST_BYPASS_GBPS:
        return Clean(f"{what}: {network} has no OS-bypass path; the rule nccl-sockets judges it")
    if reached >= MAX_LINE_SHARE * line:
        return Clean(
            f"{what}: {reached:.3g} GB/s per node is {percent(reached / line)} of {line:g} GB/s, not below "
            f"{percent(MAX_LINE_SHARE)}"
        )
    return Found([_finding(measurements, rows, reached, line)])


def _finding(
    measurements: Measurements, rows: list[CommunicationRow], reached: float, line: float
) -> Finding:
    network = measurements.job.network
    share = measurements.share(exposed_ns(measurements, rows))
    of_line = f"{percent(reached / line)} of the {line:g} GB/s of "
    whose = "its adapters" if network is not None else "even the slowest OS-bypass network"
    return Finding(
        rule=RULE.id,
        severity=severity_of(share),
        confidence="high" if network is not None else "medium",
        title=(
            f"The network path is slow: {reached:.3g} GB/s leave a node, {of_line}{whose}, and "
            f"{percent(share)} of the step is exposed transfer between nodes"
        ),
        ranks=list(measurements.run.ranks),
        evidence=[
            share_evidence("exposed_off_node", share, "of the step window, mean over ranks"),
            Evidence(metric="node_bandwidth", value=reached, unit="GB/s", where="leaving a node, best kind"),
            Evidence(
                metric="line_rate",
                value=line,
                unit="GB/s",
                where=f"of a node, {network}" if network is not None else "of the slowest OS-bypass network",
            ),
        ],
        gain=ceiling(measurements.step_ns, freed(measurements, exposed_ns(measurements, rows))),
        action=_action(measurements),
        quality_risk="None: the same bytes arrive sooner.",
        edits=[f"network={_target(measurements)}"],
    )


def _action(measurements: Measurements) -> str:
    environment = measurements.job.environment
    forced = [text for (name, value), text in _FORCED.items() if environment.get(name, "").lower() == value]
    unset = f"The environment forces sockets: unset {', '.join(forced)}. " if forced else ""
    return (
        f"{unset}Run once with NCCL_DEBUG=INFO and look for 'NET/OFI Selected Provider is efa' or 'NET/IB'; "
        "'NET/Socket' is the slow path. On AWS install aws-ofi-nccl and libfabric in the image, set "
        "FI_PROVIDER=efa, and pass the EFA devices and a security group that lets all traffic within it "
        "through; with InfiniBand check ibstat and that NCCL_IB_DISABLE is unset. Then measure with "
        "nccl-tests' alltoall_perf."
    )


def _target(measurements: Measurements) -> str:
    """The network to expect: the one named if it bypasses the OS, else the usual one of the GPU."""
    network = measurements.job.network
    if network is not None and not is_sockets(network):
        return network
    return OS_BYPASS_OF_GPU.get(gpu_key(measurements.run.device) or "", "efa_p3dn")


RULE = Rule("slow-network-path", "Collectives between nodes miss the fast path", judge)
