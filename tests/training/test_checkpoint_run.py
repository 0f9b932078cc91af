"""A run that is stopped, loses its disk and goes on, beside one that had none of it."""

from pathlib import Path

import pytest

from tests.training.checkpoint_runs import losses, run, running, steps_in, wait_until

pytestmark = pytest.mark.slow


def test_stopped_and_out_of_disk_a_run_goes_on_with_the_losses_of_an_uninterrupted_one(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "interrupted"
    with running(folder, "loop.steps=1000000") as process:
        wait_until(lambda: list(folder.glob("traces/*/rank0*.gz")), process)  # it is in its loop
        process.terminate()
        _, said = process.communicate(timeout=60)
        assert process.returncode != 0  # torchrun tells its caller that it was stopped
    (stopped,) = steps_in(folder)
    assert f"stopping after step {stopped} as asked; the same command goes on from there" in said
    assert stopped % 2 == 0  # at the end of a window of two steps

    # The parameters alone are 4 tables x 500 rows x 16 values x 4 bytes = 128 kB on two ranks.
    said = run(folder, f"loop.steps={stopped + 4}", "checkpoint.every_steps=2", largest_file=20_000)
    assert f"resumed after step {stopped} " in said
    for step in (stopped + 2, stopped + 4):
        assert f"could not save step {step} in {folder / 'checkpoints'}" in said
    assert list(losses(folder)) == list(range(stopped, stopped + 4))  # and training went on
    assert [path.name for path in (folder / "checkpoints").iterdir()] == [f"step-{stopped:012d}"]

    run(folder, f"loop.steps={stopped + 10}")
    alone = tmp_path / "uninterrupted"
    run(alone, f"loop.steps={stopped + 10}", "checkpoint.folder=")
    # To the last bit: same machine, same ranks, one thread each.
    expected = losses(alone)
    assert losses(folder) == {step: expected[step] for step in range(stopped, stopped + 10)}
