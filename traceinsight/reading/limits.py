"""What keeps hostile or broken input from taking the machine down; the one place to change it."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what one file may make us read or hold.

    Attributes:
        block_bytes: Text decoded at a time; small enough to stay in cache, large enough to amortise the call.
        max_event_bytes: Longest stretch of text without an event boundary that is held before giving up.
        max_outside_bytes: Most text kept from outside the event array (devices, process groups, ...).
        max_text_bytes: Most decompressed text read from one file.
        max_ratio: Highest text/compressed ratio accepted once ``ratio_from_bytes`` have come out. Real
            traces lie between 8 and 60; only constructed files get near deflate's limit of 1032.
        ratio_from_bytes: Below this size any ratio is harmless.
        max_arrays: Most event arrays read from one file. A trace has one; each costs a copy of its block.
        max_zip_members: Most members of an archive that are looked at.
        max_folders: Most folders that a folder named by the user is searched through.
        max_manifest_bytes: Largest ``run.json`` that is read; decoded, it may take fifty times as much.

    """

    block_bytes: int = MIB
    max_event_bytes: int = 64 * MIB
    max_outside_bytes: int = 32 * MIB
    max_text_bytes: int = 0
    max_ratio: float = 400.0
    ratio_from_bytes: int = 256 * MIB
    max_arrays: int = 100
    max_zip_members: int = 10_000
    max_folders: int = 100_000
    max_manifest_bytes: int = 8 * MIB

    def text_budget(self) -> int:
        """``max_text_bytes``, or four times the memory that is free now.

        The columns of an event take about a quarter of its text, so four times free memory is where even a
        well-formed file stops fitting.
        """
        return self.max_text_bytes or max(512 * MIB, 4 * available_memory_bytes())


LIMITS = Limits()


def available_memory_bytes() -> int:
    """Memory this process could still take, or 8 GiB where the system does not tell."""
    try:
        meminfo = Path("/proc/meminfo").read_text(encoding="ascii", errors="replace")
        found = re.search(
            r"MemAvailable:\s+(\d+) kB", meminfo
        )  # unlike free pages, counts caches as available
        if found:
            return min(int(found[1]) * 1024, _container_limit_bytes())
    except OSError:
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return 8 << 30


def _container_limit_bytes() -> int:
    """What the control group of this process may still take; without a limit, more than anybody has."""
    group = Path("/sys/fs/cgroup")
    try:
        limit = int((group / "memory.max").read_text(encoding="ascii"))
        return max(limit - int((group / "memory.current").read_text(encoding="ascii")), 0)
    except (OSError, ValueError):
        return 1 << 62
