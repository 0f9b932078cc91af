"""Save a run every N steps and on SIGTERM, and go on from where it was, on any number of ranks.

``Checkpointer`` is what a loop needs: ``resume()`` before it, ``after_step()`` at the end of every step.
docs/checkpoints.md says what is stored and what is promised.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import torch
import torch.distributed as dist
import torchrec
from torch.profiler import record_function

from training import checkpoint_files as files
from training.checkpoint_blocks import CheckpointError
from training.checkpoint_ranks import Ranks
from training.checkpoint_state import read_state, write_state
from training.checkpoint_stop import StopRequest


class Checkpointer:
    """One rank's part in the checkpoints of a run. Every method is called by all ranks alike.

    ``folder`` is shared by all ranks; None switches saving and the handling of SIGTERM off. ``every`` 0
    saves on SIGTERM and after ``last_step`` only. ``start_from`` is a checkpoint of another run, whose state
    a fresh run begins with. ``about`` goes into the card of each checkpoint. ``before_save`` brings the
    replicas of 2D parallelism to one state.
    """

    def __init__(
        self,
        model: Any,
        optimizer: Any,
        *,
        folder: Path | None,
        every: int = 0,
        keep: int = 3,
        last_step: int | None = None,
        start_from: Path | None = None,
        about: dict[str, Any] | None = None,
        before_save: Callable[[], object] | None = None,
    ) -> None:
        self._model, self._optimizer = model, optimizer
        self._folder, self._every, self._keep, self._last_step = folder, every, keep, last_step
        self._start_from, self._about, self._before_save = start_from, about or {}, before_save
        if folder is not None or start_from is not None:
            # Its own group: planning and agreeing are a matter of the hosts, also where the job uses NCCL.
            self._ranks = Ranks(dist.new_group(backend="gloo"))
        if folder is not None:
            self._stop = StopRequest(self._ranks.group)

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give SIGTERM its earlier meaning. After an error nothing is exchanged: other ranks may be gone."""
        if self._folder is not None and kind is None:
            self._stop.close()

    def after_step(self, done: int) -> bool:
        """Save if it is time to; return whether to stop. ``done`` counts the steps since the first start."""
        if self._folder is None:
            return False
        stop = self._stop.agreed()
        if stop or done == self._last_step or (self._every and done % self._every == 0):
            saved = self.save(done)
            if stop:
                outcome = "the same command goes on from there" if saved else "that state is lost (see above)"
                self._say(f"SIGTERM: stopped after step {done}; {outcome}")
        return stop

    def save(self, step: int) -> Path | None:
        """Write and publish the state after ``step`` steps; None, with a message, if that failed.

        A full disk costs the checkpoint and not the training; the earlier checkpoints stay.
        """
        assert self._folder is not None
        began = time.perf_counter()
        try:
            with record_function("## checkpoint ##"):
                final = self._write(self._folder, step)
        except CheckpointError as error:
            self._say(f"could not save step {step} in {self._folder} ({error}); training goes on without it")
            return None
        self._say(f"saved step {step} in {final} ({time.perf_counter() - began:.1f} s)")
        return final

    def resume(self) -> int:
        """Load the newest checkpoint that is whole; return the number of steps behind it, 0 without any.

        Raises CheckpointError if there are checkpoints but none is whole, or if it is of another model.
        """
        folder = self._folder
        found = [] if folder is None else self._ranks.first(lambda: files.checkpoints(folder))
        for checkpoint in found:
            card = self._whole(checkpoint)
            if card is not None:
                self._read(checkpoint)
                before = f"saved by {card['world_size']} ranks, now {self._ranks.count}"
                self._say(f"resumed after step {card['step']} from {checkpoint} ({before})")
                return int(card["step"])
        if found:
            raise CheckpointError(
                f"none of the {len(found)} checkpoints in {folder} is whole: restore one, "
                "or empty the folder to start anew"
            )
        if self._start_from is not None:
            self._start(self._start_from)
        return 0

    def _start(self, checkpoint: Path) -> None:
        if self._whole(checkpoint) is None:
            raise CheckpointError(f"{checkpoint}, to start from, cannot be loaded (see above)")
        self._read(checkpoint)
        self._say(f"starting at step 0 with the state of {checkpoint}")

    def _read(self, checkpoint: Path) -> None:
        try:
            read_state(checkpoint, self._model, self._optimizer, self._ranks)
        except CheckpointError as error:
            raise CheckpointError(f"{checkpoint} cannot be loaded: {error}") from None

    def _write(self, folder: Path, step: int) -> Path:
        if self._before_save is not None:
            self._before_save()
        temporary = self._ranks.first(lambda: files.prepare(folder, step))
        try:
            write_state(temporary, self._model, self._optimizer, self._ranks)
            written = self._ranks.collect(lambda: self._measured(temporary))
            card = {
                "saved": datetime.now(UTC).isoformat(timespec="seconds"),
                "world_size": dist.get_world_size(),
                "versions": {"torch": torch.__version__, "torchrec": torchrec.__version__},
                **self._about,
                "files": {name: facts for share in written for name, facts in share.items()},
            }
            final = self._ranks.first(lambda: files.publish(temporary, folder, step, card))
        except CheckpointError:
            self._ranks.first(lambda: files.abandon(temporary))
            raise
        self._ranks.first(lambda: files.prune(folder, self._keep))
        return final

    def _measured(self, temporary: Path) -> dict[str, dict[str, int]]:
        """Return the facts of this rank's files, read back from what was written; rank 0 adds the index."""
        own = [*temporary.glob(f"__{self._ranks.rank}_*")]
        if self._ranks.rank == 0:
            own.append(temporary / ".metadata")
        facts = {path.name: files.measure(path) for path in own}
        return {name: {"bytes": fact.size_bytes, "crc32": fact.crc32} for name, fact in facts.items()}

    def _whole(self, checkpoint: Path) -> dict[str, Any] | None:
        """Return the card of a checkpoint whose files are all as they were saved, else None and a message.

        The ranks share the reading.
        """

        def check() -> str | None:
            share = sorted(card["files"].items())[self._ranks.rank :: self._ranks.count]
            return files.damage(checkpoint, dict(share))

        try:
            card = self._ranks.first(lambda: files.read_card(checkpoint))
            wrong = next((text for text in self._ranks.collect(check) if text), None)
        except CheckpointError as error:
            wrong = str(error)
        if wrong is None:
            return card
        self._say(f"{checkpoint} is damaged and is left out: {wrong}")
        return None

    def _say(self, text: str) -> None:
        if self._ranks.rank == 0:
            sys.stderr.write(f"training.checkpoint: {text}\n")
            sys.stderr.flush()
