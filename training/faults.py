"""Faults put in on purpose.

Each one measures how long it really took, from which ``training.ground_truth`` tells an analysis the truth.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.profiler import record_function

from training.config import EVERY_RANK, Config, FaultConfig
from training.emulation import emulated_compute
from training.stopwatch import Stopwatch

HOST = torch.device("cpu")


@dataclass(frozen=True)
class Suffered:
    """What one rank measured of the fault: one value per step in either list."""

    took_ms: list[float]
    """What the fault took on this rank; what it means is the fault's affair."""
    ready_ns: list[int]
    """When the rank was ready for the step's embedding exchange, by the machine's monotonic clock."""


class Fault:
    """No fault; also the interface of the others."""

    def __init__(self) -> None:
        self._watch = Stopwatch()
        self._ready_ns: list[int] = []

    def while_loading(self) -> None:
        """Run while this rank fetches a batch."""

    def before_forward(self, anchor: torch.Tensor) -> None:
        """Run before this rank's first embedding exchange of a step; ``anchor`` is on its device."""
        self._suffer(anchor)
        self._ready_ns.append(time.monotonic_ns())

    def before_lookup(self, device: torch.device) -> None:
        """Run before this rank looks up one group of tables."""

    def after_lookup(self) -> None:
        """Run when it did."""

    def end_step(self) -> None:
        """Run after a step. A pipeline loads none or several batches in one, so loads are no steps."""
        self._watch.end_step()

    def suffered(self) -> Suffered:
        """Return what this rank measured."""
        return Suffered(self._took_ms(), self._ready_ns)

    def _suffer(self, anchor: torch.Tensor) -> None:
        pass

    def _took_ms(self) -> list[float]:
        return self._watch.milliseconds()


class LateRank(Fault):
    """A rank reaches the embedding exchange late in every step, as if its own work took longer."""

    def __init__(self, config: FaultConfig) -> None:
        super().__init__()
        self._delay_ms = config.delay_ms

    def _suffer(self, anchor: torch.Tensor) -> None:
        with self._watch.timing(anchor.device):
            emulated_compute(anchor, self._delay_ms)


class SlowInput(Fault):
    """The loader does not keep up: the next batch comes late."""

    def __init__(self, config: FaultConfig) -> None:
        super().__init__()
        self._delay_ms = config.delay_ms

    def while_loading(self) -> None:
        """Let the rank wait for its batch for the configured time."""
        with self._watch.timing(HOST):
            time.sleep(self._delay_ms / 1000)


class HostSync(Fault):
    """The host stops to wait for the device several times a step, as ``.item()`` in a loop makes it.

    A CPU has no queue to wait for, so there the stall is a sleep of the host under the same annotation.
    """

    def __init__(self, config: FaultConfig) -> None:
        super().__init__()
        self._count = max(1, config.count)
        self._stall_s = config.delay_ms / 1000 / self._count

    def _suffer(self, anchor: torch.Tensor) -> None:
        with self._watch.timing(HOST):
            for _ in range(self._count):
                self._stall(anchor)

    def _stall(self, anchor: torch.Tensor) -> None:
        with record_function("## host_sync ##"):
            if anchor.is_cuda:
                anchor.sum().item()
            else:
                time.sleep(self._stall_s)


class TinyKernels(Fault):
    """Work cut into many operators that each do next to nothing."""

    def __init__(self, config: FaultConfig) -> None:
        super().__init__()
        self._count = config.count

    def _suffer(self, anchor: torch.Tensor) -> None:
        few = anchor[0].detach().clone()
        with self._watch.timing(anchor.device):
            for _ in range(self._count):
                few.add_(1e-9)


class HotPartition(Fault):
    """One partition gets most ids of its table (``training.data``); its owner's lookups take longer.

    Every rank measures its lookups; the cost is the owner's excess over the slowest other rank.
    """

    def before_lookup(self, device: torch.device) -> None:
        """Start the clock."""
        self._watch.begin(device)

    def after_lookup(self) -> None:
        """Stop it."""
        self._watch.end()


class SlowLink(Fault):
    """A link that all ranks share (``network.behind_slow_link``). Rank 0 reads how much crossed it per step.

    The cost is the time the link needs for these bytes; it is exposed as far as nothing computes meanwhile.
    """

    def __init__(self, config: FaultConfig, counters: Path = Path("/proc/net/dev")) -> None:
        super().__init__()
        self._bytes_per_ms = config.link_mbit * 1e6 / 8 / 1e3
        self._counters = counters
        self._sent: int | None = None
        self._busy_ms: list[float] = []

    def while_loading(self) -> None:
        """Begin to count before the first step exchanges anything."""
        if self._sent is None:
            self._sent = sent_over_loopback(self._counters.read_text())

    def end_step(self) -> None:
        """Account for what crossed the link since the last step's end."""
        sent = sent_over_loopback(self._counters.read_text())
        self._busy_ms.append((sent - (self._sent or sent)) / self._bytes_per_ms)
        self._sent = sent

    def _took_ms(self) -> list[float]:
        return self._busy_ms


def sent_over_loopback(counters: str) -> int:
    """Return the bytes the loopback sent, from the text of ``/proc/net/dev``: the ninth number of its row."""
    (row,) = (line for line in counters.splitlines() if line.strip().startswith("lo:"))
    return int(row.partition(":")[2].split()[8])


_OF_A_RANK: dict[str, Callable[[FaultConfig], Fault]] = {
    "late_rank": LateRank,
    "slow_input": SlowInput,
    "host_sync": HostSync,
    "tiny_kernels": TinyKernels,
}


def make_fault(config: Config, rank: int) -> Fault:
    """Return what ``rank`` suffers under ``config``."""
    fault = config.fault
    if fault.kind == "hot_partition":
        return HotPartition()
    if fault.kind == "slow_link":
        return SlowLink(fault) if rank == 0 else Fault()
    if fault.kind in _OF_A_RANK and fault.rank in (rank, EVERY_RANK):
        return _OF_A_RANK[fault.kind](fault)
    return Fault()
