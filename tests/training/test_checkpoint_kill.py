"""Kill -9, in the middle of a save and of one rank alone: the newest published checkpoint loads."""

import os
import signal
from pathlib import Path

import pytest

from tests.training.checkpoint_runs import kill_all, ranks_of, run, running, steps_in, wait_until

pytestmark = pytest.mark.slow

LARGE = ["model.rows=60000", "model.dim=64", "checkpoint.every_steps=2"]
"""61 MB of tables, so that a save takes long enough to be hit in the middle."""
ENDLESS = "loop.steps=1000000"


def saving(folder: Path) -> bool:
    """Whether a rank is writing its part of a checkpoint, with an earlier one published."""
    parts = (folder / "checkpoints").glob(".saving-*/*.distcp")
    return bool(steps_in(folder)) and any(path.stat().st_size for path in parts)


def killed_while_saving(tmp_path: Path) -> Path:
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        with running(folder, *LARGE, ENDLESS) as process:
            wait_until(lambda at=folder: saving(at), process)
            kill_all(process)
        if list((folder / "checkpoints").glob(".saving-*")):
            return folder
    pytest.fail("five kills, and none fell into a save")


def test_killed_runs_go_on_from_the_newest_published_checkpoint(tmp_path: Path) -> None:
    folder = killed_while_saving(tmp_path)
    before = steps_in(folder)[-1]

    with running(folder, *LARGE, ENDLESS) as process:
        wait_until(lambda: steps_in(folder)[-1] > before, process)
        os.kill(ranks_of(process)[-1], signal.SIGKILL)
        _, said = process.communicate(timeout=60)
        assert process.returncode != 0
    assert f"resumed after step {before} " in said

    newest = steps_in(folder)[-1]
    assert f"resumed after step {newest} " in run(folder, *LARGE, f"loop.steps={newest + 2}")
    assert steps_in(folder)[-1] == newest + 2
    assert list((folder / "checkpoints").glob(".saving-*")) == []
