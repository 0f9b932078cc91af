"""Which steps are profiled, under which name they are filed, and how a reader finds them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.capture.test_recorder import captured_steps, train
from traceinsight.capture import Capture
from traceinsight.capture.schedule import Schedule


def test_a_repeated_schedule_files_each_window_by_itself(
    tmp_path: Path, diagnose: Callable[..., Any]
) -> None:
    train(Capture(tmp_path, wait=1, warmup=1, active=2, repeat=2), steps=12)

    # wait 1, warmup 1, active 2: steps 2 and 3; then 4 and 5 again, steps 6 and 7. The last four: nothing.
    first, second = tmp_path / "rank0.pt.trace.json.gz", tmp_path / "rank0.window1.pt.trace.json.gz"
    assert sorted(path.name for path in tmp_path.glob("*.gz")) == [first.name, second.name]
    assert captured_steps(first) == ["ProfilerStep#2", "ProfilerStep#3"]
    assert captured_steps(second) == ["ProfilerStep#6", "ProfilerStep#7"]
    # The newest window is analysed and the other one listed.
    found = diagnose(tmp_path)
    assert (found.run.files, len(found.run.other_runs)) == ([str(second)], 1)


def test_a_resumed_run_counts_its_steps_on(tmp_path: Path) -> None:
    train(Capture(tmp_path, wait=1, warmup=1, active=1, first_step=100), steps=4)

    assert captured_steps(tmp_path / "rank0.pt.trace.json.gz") == ["ProfilerStep#102"]
    manifest = json.loads((tmp_path / "run.json").read_text())
    assert [step["step"] for step in manifest["steps"]] == [100, 101, 102, 103]
    assert manifest["capture"]["first_step"] == 100


@pytest.mark.parametrize(
    ("step", "profiled"),
    [(9, False), (12, False), (13, True), (14, True), (15, False), (18, True), (19, True), (23, False)],
)
def test_profiled_steps_by_number(step: int, profiled: bool) -> None:
    # From step 10: wait 2 (10, 11), warmup 1 (12), active 2 (13, 14); again 15-19; then no more.
    assert Schedule(wait=2, warmup=1, active=2, repeat=2, first_step=10).profiles(step) is profiled


def test_there_is_no_profiler_outside_a_window(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    alive = []
    step = torch.profiler.profile.step

    def counted(self: torch.profiler.profile) -> None:
        alive.append(self.step_num)
        step(self)

    monkeypatch.setattr(torch.profiler.profile, "step", counted)
    train(Capture(tmp_path, wait=3, warmup=1, active=2, repeat=2), steps=20)
    # Steps 3 to 5 and 9 to 11 end inside a window; 6 to 8 and from 12 on nothing is asked of torch.
    assert alive == [3, 4, 5, 9, 10, 11]


def test_numbers_read_later_go_to_their_step(tmp_path: Path) -> None:
    with Capture(tmp_path, wait=0, warmup=1, active=1) as recording:
        for step in range(3):
            recording.measured(step, loss=float(step))  # the step under way
            recording.step()
        recording.measured(1, loss=float("nan"), rate=0.5)
        recording.measured(7, loss=1.0)  # there is no such step
    steps = json.loads((tmp_path / "run.json").read_text())["steps"]
    assert [step["loss"] for step in steps] == [0.0, None, 2.0]
    assert steps[1]["rate"] == 0.5


def test_what_is_counted_ends_up_in_the_manifest_alone(tmp_path: Path) -> None:
    train(Capture(tmp_path, wait=0, warmup=1, active=2, measure=torch.nn.Linear(2, 2)), steps=5)
    measured = json.loads((tmp_path / "run.json").read_text())["measured_tables"]
    assert measured == {"steps": 2, "missing_ranks": [], "tables": {}}  # a model without sharded tables
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rank0.pt.trace.json.gz", "run.json"]


def test_a_profiler_that_fails_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = []

    def fail(self: object) -> None:
        calls.append(self)
        raise RuntimeError("CUPTI has given up")

    monkeypatch.setattr(torch.profiler.profile, "step", fail)
    train(Capture(tmp_path, wait=0, warmup=1, active=1), steps=4)

    assert len(calls) == 1  # torch crashes when a transition that failed is followed by another
    assert "could not profile a step" in capsys.readouterr().err
    assert len(json.loads((tmp_path / "run.json").read_text())["steps"]) == 4


@pytest.mark.parametrize(
    ("numbers", "error"),
    [
        ({"wait": -1}, "wait=-1: it must be 0 or more"),
        ({"warmup": -1}, "warmup=-1: it must be 0 or more"),
        ({"active": 0}, "active=0: it must be 1 or more"),
        ({"repeat": 0}, "repeat=0: it must be 1 or more"),
        ({"first_step": -5}, "first_step=-5: it must be 0 or more"),
    ],
)
def test_a_schedule_that_profiles_nothing_is_refused_before_training(
    tmp_path: Path, numbers: dict[str, int], error: str
) -> None:
    with pytest.raises(ValueError, match=error):
        Capture(tmp_path, **numbers)
    with pytest.raises(TypeError, match=r"active=2\.5: it is a whole number of steps"):
        Capture(tmp_path, active=2.5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("steps", "note"),
    [
        # wait 2, warmup 1: the first profiled step is 3; active 2: 3 and 4, then 8 and 9, over with step 9.
        (3, "the trace holds 0 of 2 steps"),
        (2, "no step was profiled: training ended before step 3, the first after wait=2 and warmup=1"),
        (4, "the trace holds 1 of 2 steps"),
        (9, "1 of 2 windows were profiled to their end"),
        (10, None),
    ],
)
def test_a_run_that_ends_before_its_windows_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], steps: int, note: str | None
) -> None:
    train(Capture(tmp_path, wait=2, warmup=1, active=2, repeat=2), steps=steps)
    said = capsys.readouterr().err
    notes = json.loads((tmp_path / "run.json").read_text())["capture"]["notes"]
    if note is None:
        assert (said, notes) == ("", [])
    else:
        assert note in said
        assert note in notes[0]
