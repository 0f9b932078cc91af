"""Save a run every N steps and on SIGTERM, and go on from where it was, on any number of ranks.

docs/checkpoints.md says what is stored and what is promised.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
import torchrec
from torch.profiler import record_function

from training import checkpoint_files as files
from training.checkpoint_blocks import CheckpointError
from training.checkpoint_ranks import Ranks
from training.checkpoint_state import read_state, write_state

if TYPE_CHECKING:
    from training.state import TrainState


@dataclass(frozen=True)
class Policy:
    """Where checkpoints go and when; ``folder`` is shared by all ranks.

    ``every_steps`` 0 saves at a stop and at the end only. ``start_from`` is a checkpoint of another run whose
    parameters a fresh run begins with, at step 0.
    """

    folder: Path | None
    every_steps: int = 0
    keep: int = 2
    resume: bool = True
    start_from: Path | None = None


class Checkpoints:
    """The hooks of ``training.loop`` that save and restore. Every method is called by all ranks alike.

    A checkpoint is written at the end of a window of steps, when the losses of all its steps are known: with
    ``every_steps`` 25 and windows of 10 steps after steps 30, 50, 80, ...
    """

    def __init__(self, policy: Policy, about: dict[str, Any] | None = None) -> None:
        """Take the policy and what else goes into the card of each checkpoint; joins a group of its own."""
        self._policy, self._about = policy, about or {}
        # Planning and agreeing are a matter of the hosts, also where the job itself uses NCCL.
        self._ranks = Ranks(dist.new_group(backend="gloo"))
        self._due = policy.every_steps
        self._saved_at: int | None = None
        self._known_whole: set[Path] = set()

    def resume(self, state: TrainState) -> None:
        """Load the newest checkpoint that is whole into ``state``; without any it stays as it is.

        Newer ones that are damaged are then moved aside. Raises CheckpointError if there are checkpoints but
        none is whole, or if it is of another model.
        """
        folder = self._policy.folder
        found = [] if folder is None else self._ranks.first(lambda: files.checkpoints(folder))
        if found and folder is not None and not self._policy.resume:
            return self._start_anew(folder, state)
        for at, checkpoint in enumerate(found):
            card = self._whole(checkpoint)
            if card is not None:
                self._read(checkpoint, state)
                state.step, state.data_position = card["step"], card["data_position"]
                state.metrics.load_state_dict(card["metrics"])
                self._saved_at = state.step
                self._advance(state.step)
                before = f"saved by {card['world_size']} ranks, now {self._ranks.count}"
                self._say(f"resumed after step {state.step} from {checkpoint} ({before})")
                return self._set_aside(found[:at])
        if found:
            raise CheckpointError(
                f"none of the {len(found)} checkpoints in {folder} is whole: restore one, "
                "or empty the folder to start anew"
            )
        if self._policy.start_from is not None:
            self._start(self._policy.start_from, state)
        return None

    def on_step_end(self, state: TrainState) -> None:
        """Save when it is time to, and before a stop that all ranks agreed on."""
        window_ended = state.metrics.pending_steps == 0
        if state.stop_agreed:
            saved = self.save(state)
            told = "what follows the last checkpoint is lost"
            if saved:
                anew = "" if self._policy.resume else ", with checkpoint.resume on,"
                told = f"the same command{anew} goes on from there"
            self._say(f"stopping after step {state.step} as asked; {told}")
        elif self._policy.every_steps and window_ended and state.step >= self._due:
            self.save(state)
            self._advance(state.step)

    def on_end(self, state: TrainState) -> None:
        """Save the final state, unless it has just been saved."""
        if state.step != self._saved_at:
            self.save(state)

    def save(self, state: TrainState) -> Path | None:
        """Write and publish the state; None, with a message, if that failed or no folder is set.

        A full disk costs the checkpoint and not the training; the earlier checkpoints stay.
        """
        folder = self._policy.folder
        if folder is None:
            return None
        began = time.perf_counter()
        try:
            with record_function("## checkpoint ##"):
                final = self._write(folder, state)
        except CheckpointError as error:
            why = f"{error}; {files.free_space(folder)} free"
            self._say(f"could not save step {state.step} in {folder} ({why}); training goes on without it")
            return None
        self._saved_at = state.step
        self._say(f"saved step {state.step} in {final} ({time.perf_counter() - began:.1f} s)")
        try:
            self._prune(folder, final)
        except CheckpointError as error:
            self._say(f"could not remove older checkpoints in {folder}: {error}")
        return final

    def _advance(self, step: int) -> None:
        every = self._policy.every_steps
        if every:
            self._due = (step // every + 1) * every

    def _start_anew(self, folder: Path, state: TrainState) -> None:
        """What to start from is read first: it may be one of the checkpoints that are moved aside."""
        if self._policy.start_from is not None:
            self._start(self._policy.start_from, state)
        earlier = self._ranks.first(lambda: files.retire(folder))
        self._say(f"starting anew (resume is off); earlier checkpoints are now in {earlier}")

    def _start(self, checkpoint: Path, state: TrainState) -> None:
        wrong = self._ranks.first(lambda: files.not_one(checkpoint))
        if wrong is not None:
            raise CheckpointError(f"checkpoint.start_from = {checkpoint} is no checkpoint: {wrong}")
        if self._whole(checkpoint) is None:
            raise CheckpointError(f"{checkpoint}, to start from, cannot be loaded (see above)")
        self._read(checkpoint, state)
        self._say(f"starting at step 0 with the parameters of {checkpoint}")

    def _read(self, checkpoint: Path, state: TrainState) -> None:
        try:
            read_state(checkpoint, state.model, state.optimizer, self._ranks)
        except CheckpointError as error:
            raise CheckpointError(f"{checkpoint} cannot be loaded: {error}") from None

    def _write(self, folder: Path, state: TrainState) -> Path:
        if state.sync_replicas is not None:
            state.sync_replicas()  # a checkpoint has one set of tables, whatever the number of replicas
        temporary = self._ranks.first(lambda: files.prepare(folder, state.step))
        try:
            write_state(temporary, state.model, state.optimizer, self._ranks)
            written = self._ranks.collect(lambda: self._measured(temporary))
            card = {
                "saved": datetime.now(UTC).isoformat(timespec="seconds"),
                "world_size": self._ranks.count,
                "data_position": state.data_position,
                "versions": {"torch": torch.__version__, "torchrec": torchrec.__version__},
                **self._about,
                "metrics": state.metrics.state_dict(),
                "files": {name: facts for share in written for name, facts in share.items()},
            }
            final = self._ranks.first(lambda: files.publish(temporary, folder, state.step, card))
        except CheckpointError:
            self._ranks.first(lambda: files.abandon(temporary))
            raise
        return final

    def _prune(self, folder: Path, written: Path) -> None:
        """Remove what is older than the newest ``keep`` whole ones, of which ``written`` is one.

        What this process neither wrote nor checked is checked before it counts, once: a damaged one must
        displace no whole one. Later ones are none of this run's and stay.
        """
        self._known_whole.add(written)
        kept, damaged = 1, []
        for checkpoint in self._ranks.first(lambda: files.checkpoints(folder)):
            if files.step_of(checkpoint) >= files.step_of(written):
                continue
            if kept == self._policy.keep:
                self._ranks.first(lambda old=checkpoint: files.remove(old))
            elif checkpoint in self._known_whole or self._whole(checkpoint):
                kept += 1
            else:
                damaged.append(checkpoint)
        self._set_aside(damaged)

    def _set_aside(self, damaged: list[Path]) -> None:
        for checkpoint in damaged:
            try:
                aside = self._ranks.first(lambda bad=checkpoint: files.set_aside(bad))
                self._say(f"the damaged one is now {aside}")
            except CheckpointError as error:
                self._say(f"the damaged {checkpoint} could not be renamed: {error}")

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
        ranks = self._ranks
        try:
            card = ranks.first(lambda: files.read_card(checkpoint))
            share = dict(sorted(card["files"].items())[ranks.rank :: ranks.count])
            found = ranks.collect(lambda: files.damage(checkpoint, share))
            wrong = next((text for text in found if text), None)
        except CheckpointError as error:
            wrong = str(error)
        if wrong is None:
            self._known_whole.add(checkpoint)
            return card
        self._say(f"{checkpoint} is damaged and does not count: {wrong}")
        return None

    def _say(self, text: str) -> None:
        if self._ranks.rank == 0:
            sys.stderr.write(f"training.checkpoint: {text}\n")
            sys.stderr.flush()
