"""One folder, one run: what an earlier one left moves aside, and the last line says what is really there."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch.distributed as dist

from tests.training.running import run_training, settings
from traceinsight.reading import load
from training import run_folder
from training.config import with_settings
from training.recipes import recipe


@pytest.fixture
def one_rank() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


class State:
    """As much of a training state as the folder wants to know."""

    def __init__(self, first_step: int, step: int, *changes: str) -> None:
        self.config = with_settings(recipe("frm_cpu_2rank"), changes)  # wait 20, warmup 3: profiles from 23
        self.first_step, self.step = first_step, step


def fill(folder: Path, *names: str) -> None:
    folder.mkdir(exist_ok=True)
    for name in names:
        (folder / name).write_text(name)


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


RUN = [".rank2.counts.json", "rank0.pt.trace.json.gz", "rank3.window1.pt.trace.json.gz", "run.json"]


def test_an_earlier_runs_record_moves_to_a_folder_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "job"
    assert run_folder.set_earlier_aside(folder) is None  # not there yet
    for number, there in ((1, [".earlier-1"]), (2, [".earlier-1", ".earlier-2"])):
        fill(folder, *RUN, "notes.txt")
        assert run_folder.set_earlier_aside(folder) == folder / f".earlier-{number}"
        assert names_in(folder) == [*there, "notes.txt"]  # which is not ours
        assert names_in(folder / f".earlier-{number}") == RUN
    assert run_folder.set_earlier_aside(folder) is None


def test_what_cannot_be_moved_is_said(
    one_rank: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_path: Path, _target: Path) -> None:
        raise PermissionError("not yours")

    fill(tmp_path / "job", *RUN)
    monkeypatch.setattr(Path, "rename", refuse)
    run_folder.begin(State(0, 0), tmp_path / "job")  # and training goes on
    assert "(not yours): they mix with this run's" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("state", "warned"),
    [
        (State(0, 0), None),  # 60 steps
        (State(0, 0, "loop.steps=24"), None),
        (
            State(0, 0, "loop.steps=23"),
            "the run ends after 23 steps, and step 23 is the first to be profiled",
        ),
        (State(40, 40), "the run ends after 60 steps, and step 63 is the first"),
    ],
)
def test_a_window_that_cannot_come_is_said_at_the_start(
    one_rank: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], state: State, warned: str | None
) -> None:
    run_folder.begin(state, tmp_path)
    said = capsys.readouterr().err
    assert (said == "") if warned is None else ("there will be no traces: " + warned in said)


def test_the_end_says_which_traces_there_are(
    one_rank: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped, whole = State(0, 23), State(0, 60)
    assert run_folder.what_is_there(stopped, tmp_path) == "no traces: step 23 is the first to be profiled"
    assert run_folder.what_is_there(whole, tmp_path) == "no traces (see the notes above)"
    assert run_folder.what_is_left(tmp_path) == "No trace was written yet"

    fill(tmp_path, "rank0.pt.trace.json.gz")
    assert run_folder.what_is_there(whole, tmp_path) == f"traces in {tmp_path}"
    assert run_folder.what_is_left(tmp_path) == f"Traces written so far are in {tmp_path}"

    monkeypatch.setattr(run_folder, "gather", lambda mine: [mine, False])  # rank 1 had no disk
    partly = f"traces of 1 of 2 ranks in {tmp_path} (see the notes above)"
    assert run_folder.what_is_there(whole, tmp_path) == partly


def test_rank_1_is_not_taken_for_rank_10(tmp_path: Path) -> None:
    fill(tmp_path, "rank10.pt.trace.json.gz")
    assert run_folder._traces(tmp_path, "1") == []


def steps_of(folder: Path) -> list[int]:
    manifest: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return [step["step"] for step in manifest["steps"]]


@pytest.mark.slow
def test_a_run_that_is_repeated_or_continued_keeps_what_was_recorded(tmp_path: Path) -> None:
    kept = settings(f"checkpoint.folder={tmp_path / 'checkpoints'}", "loop.window=4")
    first = run_training(tmp_path, *kept, *settings("loop.steps=4"))
    assert "there will be no traces: the run ends after 4 steps" in first.output
    assert first.output.rstrip().endswith("no traces: step 23 is the first to be profiled")
    written = (first.folder / "run.json").stat()

    again = run_training(tmp_path, *kept, *settings("loop.steps=4"))
    assert again.status == 0
    assert "already finished after 4 steps, nothing to do; to go on, raise loop.steps" in again.output
    after = (first.folder / "run.json").stat()
    assert (after.st_ino, after.st_mtime_ns) == (written.st_ino, written.st_mtime_ns)

    early = settings("loop.steps=12", "loop.wait=1", "loop.active=1")
    further = run_training(tmp_path, *kept, *early)
    assert further.output.rstrip().endswith(f"traces in {first.folder}")
    aside = further.folder / ".earlier-1"
    assert f"what an earlier run left in {first.folder} is now in {aside}" in further.output
    assert steps_of(aside) == [0, 1, 2, 3]
    assert steps_of(first.folder) == list(range(4, 12))

    alone = run_training(tmp_path, *early, *settings("world_size=1"))
    # And no rank 1 of before.
    assert names_in(alone.folder) == [".earlier-1", ".earlier-2", "rank0.pt.trace.json.gz", "run.json"]
    assert [recording.rank for recording in load(tmp_path).recordings] == [0]
