"""Presets of NCCL and libfabric variables, as data, and the shaped link of the slow_link fault."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence

PRESETS: dict[str, dict[str, str]] = {
    "as_is": {},
    # AWS EFA through aws-ofi-nccl: https://github.com/aws/aws-ofi-nccl and the EFA user guide.
    "efa": {
        "FI_PROVIDER": "efa",
        "FI_EFA_USE_DEVICE_RDMA": "1",
        "FI_EFA_FORK_SAFE": "1",
        "NCCL_SOCKET_IFNAME": "^lo,docker",
    },
    # Plain TCP with NCCL's defaults: what a cluster without EFA or InfiniBand runs.
    "sockets": {"NCCL_NET": "Socket", "NCCL_IB_DISABLE": "1", "NCCL_SOCKET_IFNAME": "^lo,docker"},
    # Several sockets and helper threads per connection: one TCP stream does not fill a fast link. NCCL
    # allows at most 64 sockets in all, threads x sockets.
    "sockets_tuned": {
        "NCCL_NET": "Socket",
        "NCCL_IB_DISABLE": "1",
        "NCCL_SOCKET_IFNAME": "^lo,docker",
        "NCCL_SOCKET_NTHREADS": "4",
        "NCCL_NSOCKS_PERTHREAD": "8",
    },
}


def apply_preset(name: str, environment: MutableMapping[str, str]) -> None:
    """Set the preset's variables before the first collective; what is set already wins."""
    for variable, value in PRESETS[name].items():
        environment.setdefault(variable, value)


def behind_slow_link(command: Sequence[str], mbit: float) -> list[str]:
    """Return ``command`` run where the loopback carries ``mbit`` megabits per second, for all ranks together.

    A network namespace of its own holds the shaped loopback, so nothing else on the machine is slowed. Needs
    Linux, ``unshare``, ``ip`` and ``tc``, and root or the right to make user namespaces. A lab with real
    links between namespaces or nodes wraps the command in its own way instead.

    What an idle link saves up (burst) crosses it at once afterwards, so that an exchange after a pause takes
    less than its bytes over the rate: kept at little more than a packet, which must fit, hence the smaller
    MTU. 10 kB are 0.8 ms at 100 Mbit/s.
    """
    shape = f"tc qdisc add dev lo root tbf rate {mbit * 1000:.0f}kbit burst 10kb latency 400ms"
    script = f'ip link set lo up mtu 9000 && {shape} && exec "$@"'
    return ["unshare", "--net", "--map-root-user", "sh", "-c", script, "slow-link", *command]
