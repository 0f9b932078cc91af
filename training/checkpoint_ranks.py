"""Doing something on every rank so that all of them know whether all of them succeeded.

A rank that raises alone leaves the others waiting in the next collective until it times out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch.distributed as dist

from training.checkpoint_blocks import CheckpointError

T = TypeVar("T")


class Ranks:
    """The ranks of a group. Every method is called by all of them alike."""

    def __init__(self, group: dist.ProcessGroup) -> None:
        self.group = group
        self.rank = dist.get_rank(group)
        self.count = dist.get_world_size(group)

    def each(self, action: Callable[[], T]) -> T:
        """Run ``action`` everywhere and return this rank's result.

        Raises CheckpointError on all ranks if it failed on one, with the first failure.
        """
        result, failure = _attempt(action)
        failures: list[str | None] = [None] * self.count
        dist.all_gather_object(failures, failure, group=self.group)
        for rank, text in enumerate(failures):
            if text is not None:
                raise CheckpointError(f"rank {rank}: {text}")
        return result  # type: ignore[return-value]  # no failure, so there is a result

    def collect(self, action: Callable[[], T]) -> list[T]:
        """Run ``action`` everywhere and return the results of all ranks; raises like ``each``."""
        mine = self.each(action)
        results: list[T] = [mine] * self.count
        dist.all_gather_object(results, mine, group=self.group)
        return results

    def first(self, action: Callable[[], T]) -> T:
        """Run ``action`` on rank 0 alone and return its result on all; raises CheckpointError on all."""
        answer: list[object] = [_attempt(action) if self.rank == 0 else None]
        dist.broadcast_object_list(answer, src=dist.get_global_rank(self.group, 0), group=self.group)
        result, failure = answer[0]  # type: ignore[misc]
        if failure is not None:
            raise CheckpointError(f"rank 0: {failure}")
        return result  # type: ignore[no-any-return]


def _attempt(action: Callable[[], T]) -> tuple[T | None, str | None]:
    try:
        return action(), None
    except (OSError, RuntimeError, ValueError, KeyError) as error:
        return None, str(error) or type(error).__name__
