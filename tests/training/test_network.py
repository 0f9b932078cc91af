"""Groups of ranks, presets of the network, and the shaped link."""

from training.faults import sent_over_loopback
from training.network import PRESETS, apply_preset, behind_slow_link
from training.replicas import group_matrix


def test_groups_of_neighbours_and_groups_of_distant_ranks() -> None:
    # 2 nodes of 2 ranks: neighbours exchange vectors inside a node; of distant ones the replicas are inside.
    assert group_matrix(4, 2, "alltoall_inside") == [[0, 1], [2, 3]]
    assert group_matrix(4, 2, "allreduce_inside") == [[0, 2], [1, 3]]
    assert group_matrix(8, 4, "allreduce_inside") == [[0, 2, 4, 6], [1, 3, 5, 7]]


def test_a_preset_leaves_alone_what_is_set() -> None:
    environment = {"NCCL_SOCKET_NTHREADS": "1"}
    apply_preset("sockets_tuned", environment)
    assert environment["NCCL_SOCKET_NTHREADS"] == "1"
    assert environment["NCCL_NSOCKS_PERTHREAD"] == "8"
    # NCCL's documentation: at most 64 sockets per connection in all.
    tuned = PRESETS["sockets_tuned"]
    assert int(tuned["NCCL_SOCKET_NTHREADS"]) * int(tuned["NCCL_NSOCKS_PERTHREAD"]) <= 64


def test_a_slow_link_wraps_the_command_and_nothing_else() -> None:
    command = behind_slow_link(["python", "-m", "training"], 12.5)
    assert command[-3:] == ["python", "-m", "training"]
    assert "rate 12500kbit" in command[command.index("-c") + 1]


def test_what_crossed_the_loopback_is_read_from_the_kernels_table() -> None:
    counters = """Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls
    lo:    1000       7    0    0    0     0          0         0     2000       9    0    0    0     0
  eth0: 5000000    4000    0    0    0     0          0         0   600000    3000    0    0    0     0
"""
    assert sent_over_loopback(counters) == 2000
