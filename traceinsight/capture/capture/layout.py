"""Who this process is, and which ranks share a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch.distributed as dist


@dataclass(frozen=True)
class Place:
    """Where a process stands in its job. ``ranks_per_node`` is None when nobody says it."""

    rank: int
    world_size: int
    ranks_per_node: int | None

    def nodes(self) -> list[dict[str, object]] | None:
        """Return ``[{"node": 0, "ranks": [...]}, ...]`` by index, without host names; None when unknown.

        torchrun numbers ranks node by node. Uneven nodes cannot be told from one process and give None.
        """
        per_node = self.ranks_per_node
        if per_node is None or per_node < 1 or self.world_size % per_node:
            return None
        firsts = range(0, self.world_size, per_node)
        return [{"node": i, "ranks": list(range(first, first + per_node))} for i, first in enumerate(firsts)]


def find_place(environment: Mapping[str, str]) -> Place:
    """Return this process's place.

    From the default process group, else from RANK and WORLD_SIZE, else rank 0 of 1.

    LOCAL_RANK is never read: on the second node it starts at 0 again, and two ranks would write the same
    file.
    """
    per_node = _number(environment, "LOCAL_WORLD_SIZE")
    if dist.is_available() and dist.is_initialized():
        return Place(dist.get_rank(), dist.get_world_size(), per_node)
    rank, world_size = _number(environment, "RANK"), _number(environment, "WORLD_SIZE")
    return Place(rank or 0, world_size or (rank or 0) + 1, per_node)


def _number(environment: Mapping[str, str], name: str) -> int | None:
    text = environment.get(name, "")
    return int(text) if text.isdecimal() else None
