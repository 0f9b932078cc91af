"""What is put in on purpose."""

from __future__ import annotations

from dataclasses import dataclass

from training.config.checks import check_fields, number, require, word

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

    kind: str = word("none", FAULT_KINDS)
    rank: int = number(0, EVERY_RANK)
    """The rank that suffers it; -1: all. Ignored by hot_partition (the owner suffers) and slow_link (all)."""
    delay_ms: float = number(0.0, 0, 600_000)
    """late_rank, slow_input, host_sync: milliseconds per step."""
    table: int = number(0, 0)
    """hot_partition: the table, by number."""
    partition: int = number(0, 0)
    """hot_partition: the partition of that table, by number."""
    share: float = number(0.9, 0, 1)
    """hot_partition: share of the table's ids that fall into the partition."""
    count: int = number(0, 0, 10_000_000)
    """host_sync: stalls per step, which share ``delay_ms`` on a CPU. tiny_kernels: operators per step."""
    link_mbit: float = number(0.0, 0, 1_000_000)
    """slow_link: megabits per second of the link."""

    def __post_init__(self) -> None:
        check_fields(self, "fault")
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
