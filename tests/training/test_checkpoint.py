"""Saving and loading in one process: what is refused, what is skipped, and what is said about it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from torch import nn
from torchrec.optim.keyed import KeyedOptimizerWrapper

from training.checkpoint import CheckpointError, Checkpoints, Policy


@pytest.fixture(autouse=True)
def one_rank() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


class Losses:
    """Stands for the metrics: no window is open, and ``seen`` is what they have to say."""

    pending_steps = 0

    def __init__(self) -> None:
        self.seen: list[float] = []

    def state_dict(self) -> dict[str, Any]:
        return {"seen": self.seen}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.seen = state["seen"]


class Job:
    """A run whose state is known: every weight and every Adagrad sum is ``value``."""

    def __init__(self, value: float, features: int = 2, bias: bool = True) -> None:
        self.model = nn.Linear(features, 1, bias=bias)
        self.optimizer = KeyedOptimizerWrapper(
            dict(self.model.named_parameters()), lambda parameters: torch.optim.Adagrad(parameters, lr=0.1)
        )
        self.metrics = Losses()
        self.step = self.data_position = 0
        self.stop_agreed = False
        self.sync_replicas = None
        self.set(value)

    def set(self, value: float) -> None:
        for parameter in self.model.parameters():
            parameter.data.fill_(value)
        self.optimizer.state_dict()["state"]["weight"]["sum"].fill_(value)

    def values(self) -> tuple[float, float]:
        weights = self.model.weight.unique().tolist()
        sums = self.optimizer.state_dict()["state"]["weight"]["sum"].unique().tolist()
        assert len(weights) == len(sums) == 1
        return weights[0], sums[0]

    def train(self, hooks: Checkpoints, *values: float) -> None:
        """One step for each value."""
        for value in values:
            self.set(value)
            self.step += 1
            self.data_position += 1
            self.metrics.seen = [*self.metrics.seen, value]
            hooks.on_step_end(self)


def saved(folder: Path, *values: float) -> None:
    """Checkpoints 1, 2, ... with these values."""
    Job(0.0).train(Checkpoints(Policy(folder, every_steps=1, keep=9)), *values)


def resumed(policy: Policy, **model: Any) -> Job:
    job = Job(0.0, **model)
    Checkpoints(policy).resume(job)
    return job


def steps_in(folder: Path) -> list[int]:
    return sorted(int(path.name.removeprefix("step-")) for path in folder.iterdir())


def data_of(folder: Path, step: int) -> Path:
    return folder / f"step-{step:012d}" / "__0_0.distcp"


def test_the_newest_state_comes_back_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    saved(tmp_path, 0.25, 0.5)
    job = resumed(Policy(tmp_path))
    assert (job.step, job.data_position, job.metrics.seen) == (2, 2, [0.25, 0.5])
    assert job.values() == (0.5, 0.5)
    assert "resumed after step 2" in capsys.readouterr().err


def test_an_empty_folder_starts_at_zero(tmp_path: Path) -> None:
    job = resumed(Policy(tmp_path / "not yet there"))
    assert (job.step, job.values()) == (0, (0.0, 0.0))


def test_resuming_can_be_declined(tmp_path: Path) -> None:
    saved(tmp_path, 0.25, 0.5)
    anew = Policy(tmp_path, every_steps=1, keep=1, resume=False)
    hooks, job = Checkpoints(anew), Job(0.0)
    hooks.resume(job)
    assert job.step == 0
    job.train(hooks, 0.75)

    # The new run's checkpoint is what the next start finds; those of the old one are beside it, all of them.
    assert resumed(Policy(tmp_path)).metrics.seen == [0.75]
    assert steps_in(tmp_path / "earlier-1") == [1, 2]


def test_a_new_run_may_start_from_a_checkpoint_that_it_moves_aside(tmp_path: Path) -> None:
    saved(tmp_path, 0.25, 0.5)
    job = resumed(Policy(tmp_path, resume=False, start_from=tmp_path / "step-000000000001"))
    assert (job.step, job.values()[0]) == (0, 0.25)
    assert steps_in(tmp_path / "earlier-1") == [1, 2]


def test_the_interval_and_the_end_are_saved(tmp_path: Path) -> None:
    job, hooks = Job(0.0), Checkpoints(Policy(tmp_path, every_steps=3, keep=9))
    job.train(hooks, *[0.0] * 7)
    hooks.on_end(job)
    assert steps_in(tmp_path) == [3, 6, 7]


def test_the_interval_counts_from_the_first_start_also_after_resuming(tmp_path: Path) -> None:
    saved(tmp_path, 0.0, 0.0)
    hooks, job = Checkpoints(Policy(tmp_path, every_steps=5, keep=9)), Job(0.0)
    hooks.resume(job)
    job.train(hooks, *[0.0] * 9)  # steps 3 to 11
    assert steps_in(tmp_path) == [1, 2, 5, 10]


def test_a_window_of_steps_is_finished_first(tmp_path: Path) -> None:
    # Windows of 4 steps: what is due after step 3 is saved after step 4, what is due after 6 after 8.
    job, hooks = Job(0.0), Checkpoints(Policy(tmp_path, every_steps=3, keep=9))
    for step in range(1, 10):
        job.metrics.pending_steps = step % 4
        job.train(hooks, 0.0)
    assert steps_in(tmp_path) == [4, 8]


def test_only_the_newest_are_kept(tmp_path: Path) -> None:
    Job(0.0).train(Checkpoints(Policy(tmp_path, every_steps=1, keep=2)), *[0.0] * 4)
    assert steps_in(tmp_path) == [3, 4]


def flip(data: Path) -> None:
    """Change one bit in the middle."""
    content = data.read_bytes()
    middle = len(content) // 2
    data.write_bytes(content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :])


def test_a_damaged_newest_one_displaces_nothing(tmp_path: Path) -> None:
    saved(tmp_path, 0.25, 0.5, 0.75)
    flip(data_of(tmp_path, 3))
    hooks, job = Checkpoints(Policy(tmp_path, every_steps=1, keep=1)), Job(0.0)
    hooks.resume(job)
    assert job.step == 2
    assert sorted(path.name[-9:] for path in tmp_path.iterdir()) == ["000000001", "000000002", "3.damaged"]
    job.train(hooks, 0.875)
    assert resumed(Policy(tmp_path)).metrics.seen == [0.25, 0.5, 0.875]


def test_a_damaged_one_does_not_count_for_those_that_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved(tmp_path, 0.25, 0.5, 0.75)
    flip(data_of(tmp_path, 2))
    hooks, job = Checkpoints(Policy(tmp_path, every_steps=1, keep=3)), Job(0.0)
    hooks.resume(job)
    job.train(hooks, 1.0)
    names = [f"step-{1:012d}", f"step-{2:012d}.damaged", f"step-{3:012d}", f"step-{4:012d}"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert f"the damaged one is now {tmp_path / names[1]}" in capsys.readouterr().err


def test_what_was_just_written_stays_beside_later_ones(tmp_path: Path) -> None:
    hooks = Checkpoints(Policy(tmp_path, every_steps=1, keep=1))
    saved(tmp_path, *[0.25] * 9)  # another run, meanwhile, in the same folder
    Job(0.0).train(hooks, 0.5, 0.75)
    assert steps_in(tmp_path) == [2, 3, 4, 5, 6, 7, 8, 9]


def test_a_stop_saves_once_and_says_how_to_go_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    job, hooks = Job(0.0), Checkpoints(Policy(tmp_path))
    job.train(hooks, 0.0)
    assert steps_in(tmp_path) == []
    job.stop_agreed = True
    job.train(hooks, 0.5)
    hooks.on_end(job)
    assert steps_in(tmp_path) == [2]
    said = capsys.readouterr().err
    assert said.count("saved step 2") == 1
    assert "stopping after step 2 as asked; the same command goes on from there" in said


def test_replicas_are_brought_together_before_saving(tmp_path: Path) -> None:
    job = Job(0.0)
    job.sync_replicas = lambda: job.set(0.75)
    job.train(Checkpoints(Policy(tmp_path, every_steps=1)), 0.5)
    assert resumed(Policy(tmp_path)).values() == (0.75, 0.75)


@pytest.mark.parametrize("harm", ["flip", "cut", "remove", "card"])
def test_a_damaged_newest_checkpoint_costs_the_steps_since_the_one_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], harm: str
) -> None:
    saved(tmp_path, 0.25, 0.5)
    data = data_of(tmp_path, 2)
    if harm == "flip":
        flip(data)
    elif harm == "cut":
        data.write_bytes(data.read_bytes()[:-1])
    elif harm == "remove":
        data.unlink()
    else:
        (data.parent / "checkpoint.json").write_text('{"step": 2')
    capsys.readouterr()

    job = resumed(Policy(tmp_path))
    assert (job.step, job.metrics.seen, job.values()) == (1, [0.25], (0.25, 0.25))
    said = capsys.readouterr().err
    assert "step-000000000002 is damaged and does not count: " in said
    assert ("checkpoint.json" if harm == "card" else "__0_0.distcp") in said


def test_with_all_of_them_damaged_the_run_does_not_start_anew_by_itself(tmp_path: Path) -> None:
    saved(tmp_path, 0.25, 0.5)
    for step in (1, 2):
        data_of(tmp_path, step).write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"none of the 2 checkpoints .* empty the folder"):
        resumed(Policy(tmp_path))


def test_another_model_is_named_and_refused(tmp_path: Path) -> None:
    saved(tmp_path, 0.25)
    message = r"another model: model/weight is \[1, 2\] there and \[1, 3\] in this run"
    with pytest.raises(CheckpointError, match=message):
        resumed(Policy(tmp_path), features=3)


def test_parameters_on_one_side_only_are_named(tmp_path: Path) -> None:
    saved(tmp_path, 0.25)
    with pytest.raises(CheckpointError, match="model/bias is in the checkpoint alone"):
        resumed(Policy(tmp_path), bias=False)


def test_a_fresh_run_starts_from_another_runs_parameters_and_then_from_its_own(tmp_path: Path) -> None:
    saved(tmp_path / "pretraining", 0.25)
    policy = Policy(
        tmp_path / "tuning", every_steps=1, start_from=tmp_path / "pretraining" / "step-000000000001"
    )
    first = resumed(policy)
    assert (first.step, first.metrics.seen, first.values()) == (0, [], (0.25, 0.25))
    first.train(Checkpoints(policy), 0.5)
    again = resumed(policy)
    assert (again.step, again.values()) == (1, (0.5, 0.5))


def test_a_start_that_is_not_there_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="nothing is no checkpoint: there is nothing of that name"):
        resumed(Policy(None, start_from=tmp_path / "nothing"))


def test_a_start_from_the_folder_of_checkpoints_names_the_one_to_take(tmp_path: Path) -> None:
    saved(tmp_path, 0.25, 0.5)
    message = f"{tmp_path} is no checkpoint: that is a folder of checkpoints: name one, such as .*/step-0*2"
    with pytest.raises(CheckpointError, match=message):
        resumed(Policy(None, start_from=tmp_path))


def test_a_damaged_start_ends_the_run(tmp_path: Path) -> None:
    saved(tmp_path, 0.25)
    flip(data_of(tmp_path, 1))
    with pytest.raises(CheckpointError, match=r"to start from, cannot be loaded \(see above\)"):
        resumed(Policy(None, start_from=tmp_path / f"step-{1:012d}"))


def test_an_unwritable_folder_costs_the_checkpoint_and_not_the_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")  # unwritable for every user, root included
    job, hooks = Job(0.0), Checkpoints(Policy(tmp_path / "file", every_steps=1))
    job.train(hooks, 0.5)
    job.stop_agreed = True
    job.train(hooks, 0.5)
    said = capsys.readouterr().err
    assert "could not save step 1" in said
    assert "what follows the last checkpoint is lost" in said


def test_random_numbers_go_on_where_they_were(tmp_path: Path) -> None:
    torch.manual_seed(3)
    saved(tmp_path, 0.25)
    expected = torch.rand(4)
    torch.manual_seed(99)
    resumed(Policy(tmp_path))
    assert torch.equal(torch.rand(4), expected)
