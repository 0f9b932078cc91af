"""What is put in on purpose."""

from __future__ import annotations

from dataclasses import dataclass

from training.config.checks import choice, require

FAULT_KINDS = ("none", "late_rank", "slow_input", "hot_partition", "host_sync", "tiny_kernels", "slow_link")
EVERY_RANK = -1
NEEDED = {
    "delay_ms": ("late_rank", "slow_input"),
    "count": ("tiny_kernels",),
    "share": ("hot_partition",),
    "link_mbit": ("slow_link",),
}
"""Field -> kinds of fault that are none without it."""


@dataclass(frozen=True)
class FaultConfig:
    """A fault injected on purpose, whose cost is therefore known."""

    kind: str = "none"
    rank: int = 0
    """The rank that suffers it; -1: all. Ignored by hot_partition (the owner suffers) and slow_link (all)."""
    delay_ms: float = 0.0
    """late_rank, slow_input, host_sync: milliseconds per step."""
    table: int = 0
    """hot_partition: the table, by number."""
    partition: int = 0
    """hot_partition: the partition of that table, by number."""
    share: float = 0.9
    """hot_partition: share of the table's ids that fall into the partition."""
    count: int = 0
    """host_sync: stalls per step, which share ``delay_ms`` on a CPU. tiny_kernels: operators per step."""
    link_mbit: float = 0.0
    """slow_link: megabits per second of the link."""

    def __post_init__(self) -> None:
        choice("fault.kind", self.kind, FAULT_KINDS)
        require(self.rank >= EVERY_RANK, "fault.rank", self.rank, "a rank, or -1 for all")
        require(self.delay_ms >= 0, "fault.delay_ms", self.delay_ms, "0 or more milliseconds")
        for needed, kinds in NEEDED.items():
            require(
                self.kind not in kinds or getattr(self, needed) > 0,
                f"fault.{needed}",
                getattr(self, needed),
                f"above 0 with fault.kind = {self.kind}: it would be no fault",
            )
        require(self.table >= 0, "fault.table", self.table, "0 or more")
        require(self.partition >= 0, "fault.partition", self.partition, "0 or more")
        require(0 <= self.share <= 1, "fault.share", self.share, "between 0 and 1")
        require(self.count >= 0, "fault.count", self.count, "0 or more")
