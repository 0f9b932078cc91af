"""Faults put in on purpose.

Each one measures what it really cost, which is the ground truth of an analysis.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch.profiler import record_function

from training.config import EVERY_RANK, Config, FaultConfig
from training.emulation import emulated_compute


class Fault:
    """No fault; also the interface of the others."""

    def __init__(self) -> None:
        self.measured_ms: list[float] = []
        """What the fault cost this rank, one value per step, in milliseconds."""

    def while_loading(self) -> None:
        """Run while this rank fetches a batch."""

    def before_forward(self, anchor: torch.Tensor) -> None:
        """Run before this rank's first embedding exchange of a step."""

    def on_lookup(self, milliseconds: float) -> None:
        """Learn how long this rank's lookups in one group of tables took."""

    def _timed(self, action: Callable[[], object]) -> None:
        begin = time.perf_counter()
        action()
        self.measured_ms.append((time.perf_counter() - begin) * 1000)


class LateRank(Fault):
    """A rank reaches the embedding exchange late in every step, as if its own work took longer."""

    def __init__(self, config: FaultConfig) -> None:
        super().__init__()
        self._delay_ms = config.delay_ms

    def before_forward(self, anchor: torch.Tensor) -> None:
        """Occupy the rank for the configured time."""
        self._timed(lambda: emulated_compute(anchor, self._delay_ms))


class SlowInput(Fault):
    """The loader does not keep up: the next batch comes late."""

    def __init__(self, config: FaultConfig) -> None:
        super().__init__()
        self._delay_ms = config.delay_ms

    def while_loading(self) -> None:
        """Let the rank wait for its batch for the configured time."""
        self._timed(lambda: time.sleep(self._delay_ms / 1000))


class HostSync(Fault):
    """The host stops to wait for the device several times a step, as ``.item()`` in a loop makes it.

    A CPU has no queue to wait for, so there the stall is a sleep of the host under the same annotation.
    """

    def __init__(self, config: FaultConfig) -> None:
        super().__init__()
        self._count = max(1, config.count)
        self._stall_s = config.delay_ms / 1000 / self._count

    def before_forward(self, anchor: torch.Tensor) -> None:
        """Synchronise (GPU) or stall (CPU) the configured number of times."""
        self._timed(lambda: [self._stall(anchor) for _ in range(self._count)])

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

    def before_forward(self, anchor: torch.Tensor) -> None:
        """Launch the configured number of additions to a few values."""
        few = anchor[0].detach().clone()
        self._timed(lambda: [few.add_(1e-9) for _ in range(self._count)])


class HotPartition(Fault):
    """One partition gets most ids of its table (``training.data``); its owner's lookups take longer.

    Every rank measures its lookups; the cost is the owner's excess over the slowest other rank.
    """

    def before_forward(self, anchor: torch.Tensor) -> None:  # noqa: ARG002  the interface's
        """Begin the sum of this step's lookups."""
        self.measured_ms.append(0.0)

    def on_lookup(self, milliseconds: float) -> None:
        """Add to the sum of this step's lookups."""
        self.measured_ms[-1] += milliseconds


class SlowLink(Fault):
    """A link that all ranks share (``network.behind_slow_link``). Rank 0 reads how much crossed it per step.

    The cost is the time the link needs for these bytes; it is exposed as far as nothing computes meanwhile.
    """

    def __init__(self, config: FaultConfig, counters: Path = Path("/proc/net/dev")) -> None:
        super().__init__()
        self._bytes_per_ms = config.link_mbit * 1e6 / 8 / 1e3
        self._counters = counters
        self._sent: int | None = None

    def before_forward(self, anchor: torch.Tensor) -> None:  # noqa: ARG002  the interface's
        """Account for what crossed the link since the last step's forward."""
        sent = sent_over_loopback(self._counters.read_text())
        if self._sent is not None:
            self.measured_ms.append((sent - self._sent) / self._bytes_per_ms)
        self._sent = sent


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

_WHERE = {
    "late_rank": "forward, before the embedding exchange",
    "slow_input": "while the next batch is loaded",
    "host_sync": "forward, before the embedding exchange",
    "tiny_kernels": "forward, before the embedding exchange",
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


def ground_truth(
    config: Config, measured_ms: list[list[float]], placements: list[dict[str, list[int]]]
) -> list[dict[str, Any]]:
    """Describe the injected faults for ``run.json``: what, where, and its true cost in every step.

    ``measured_ms`` holds one list of step costs per rank, ``placements`` one table -> owning ranks per rank.
    """
    fault = config.fault
    if fault.kind == "none":
        return []
    if fault.kind == "hot_partition":
        return [_hot_partition(fault, measured_ms, placements)]
    if fault.kind == "slow_link":
        return [_slow_link(config, measured_ms[0])]
    ranks = list(range(config.world_size)) if fault.rank == EVERY_RANK else [fault.rank]
    # Ranks that suffer at the same time do not add up: the step waits for the slowest.
    steps = [max(costs) for costs in zip(*(measured_ms[rank] for rank in ranks), strict=False)]
    return [
        {
            "kind": fault.kind,
            "rank": None if fault.rank == EVERY_RANK else fault.rank,
            "ranks": ranks,
            "where": _WHERE[fault.kind],
            "configured_ms_per_step": None if fault.kind == "tiny_kernels" else fault.delay_ms,
            "count": fault.count,
            "measured_ms_per_step": [round(value, 3) for value in steps],
        }
    ]


def _slow_link(config: Config, busy_ms: list[float]) -> dict[str, Any]:
    return {
        "kind": config.fault.kind,
        "rank": None,
        "ranks": list(range(config.world_size)),
        "link_mbit": config.fault.link_mbit,
        "where": "every exchange; the link is shared by all ranks",
        # From one forward to the next; the last step's is not known.
        "measured_ms_per_step": [round(value, 3) for value in busy_ms],
    }


def _hot_partition(
    fault: FaultConfig, lookup_ms: list[list[float]], placements: list[dict[str, list[int]]]
) -> dict[str, Any]:
    table = f"table_{fault.table}_part_{fault.partition}"
    owners = sorted({rank for placement in placements for rank in placement[table]})
    others = [rank for rank in range(len(lookup_ms)) if rank not in owners]
    excess = [
        max(costs[rank] for rank in owners) - max((costs[rank] for rank in others), default=0.0)
        for costs in zip(*lookup_ms, strict=True)
    ]
    return {
        "kind": fault.kind,
        "rank": owners[0] if len(owners) == 1 else None,
        "ranks": owners,
        "table": table,
        "share": fault.share,
        "where": "forward, the lookups of the owner",
        "lookup_ms_per_rank": [round(statistics.median(costs), 3) if costs else None for costs in lookup_ms],
        "measured_ms_per_step": [round(value, 3) for value in excess],
    }
