"""Another profiler in the same process: around ours, inside it, beside it. None crashes or is lost."""

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.profiler import ProfilerActivity, profile, schedule

from traceinsight.capture import Capture
from traceinsight.capture.session import other_profiler

CPU = [ProfilerActivity.CPU]
STARTED = "rank 0: another torch profiler was started in step"


def work() -> None:
    torch.mm(torch.ones(4, 4), torch.ones(4, 4))


def products(profiler: profile, folder: Path) -> int:
    """Matrix products in the trace of somebody else's profiler."""
    file = folder / "other.json"
    profiler.export_chrome_trace(str(file))
    return sum(event.get("name") == "aten::mm" for event in json.loads(file.read_text())["traceEvents"])


def train(folder: Path, before: Callable[[int], object], steps: int = 8) -> None:
    """Profile steps 4 and 5, warming up in 2 and 3."""
    with Capture(folder, wait=2, warmup=2, active=2) as recording:
        for step in range(steps):
            before(step)
            work()
            recording.step()


def traces(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("*.gz")]


def test_a_profiler_that_is_open_already_is_left_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with profile(activities=CPU) as theirs:
        train(tmp_path / "run", lambda step: None)
    assert products(theirs, tmp_path) == 8
    assert traces(tmp_path / "run") == []
    said = capsys.readouterr().err
    assert "rank 0: could not start the profiler" in said
    assert "another torch profiler is recording, and a process can have only one at a time" in said
    notes = json.loads((tmp_path / "run" / "run.json").read_text())["capture"]["notes"]
    assert notes == ["could not start the profiler"]


@pytest.mark.parametrize(
    ("wait", "said", "kept"),
    [
        (0, "is warming up", []),  # warms up in 0 to 3: ours must not be opened in step 2
        (3, f"{STARTED} 3", []),  # begins to warm up while ours does
        (5, f"{STARTED} 5", ["rank0.pt.trace.json.gz"]),  # while ours records: step 4 is kept
        (20, "", ["rank0.pt.trace.json.gz"]),  # never comes to it
    ],
)
def test_a_scheduled_profiler_gets_its_window(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], wait: int, said: str, kept: list[str]
) -> None:
    counts: list[int] = []
    with profile(
        activities=CPU,
        schedule=schedule(wait=wait, warmup=4, active=2, repeat=1),
        on_trace_ready=lambda theirs: counts.append(products(theirs, tmp_path)),
    ) as theirs:
        train(tmp_path / "run", lambda step: theirs.step() if step else None, steps=13)
    assert counts == ([2] if wait < 20 else [])
    assert traces(tmp_path / "run") == kept
    error = capfd.readouterr().err
    assert said in error
    assert "no active profiling session" not in error  # torch's word for a session taken away


@pytest.mark.parametrize("step", [2, 3, 4, 5])
def test_a_profiler_that_is_opened_inside_ours_gets_the_session(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], step: int
) -> None:
    counts: list[int] = []

    def before(now: int) -> None:
        if now == step:
            with profile(activities=CPU) as theirs:
                work()
            counts.append(products(theirs, tmp_path))

    train(tmp_path / "run", before)
    assert counts == [1]
    error = capfd.readouterr().err
    assert f"{STARTED} {step}" in error
    assert "no active profiling session" not in error


def test_a_profiler_on_another_thread_gets_the_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    counts: list[int] = []

    def profiled() -> None:
        with profile(activities=CPU) as theirs:
            work()
        counts.append(products(theirs, tmp_path))

    def before(now: int) -> None:
        if now == 3:
            thread = threading.Thread(target=profiled)
            thread.start()
            thread.join()

    train(tmp_path / "run", before)
    assert counts == [1]
    assert f"{STARTED} 3" in capsys.readouterr().err


def test_torch_is_as_before_when_the_window_is_over(tmp_path: Path) -> None:
    entrances = ("_prepare_profiler", "_enable_profiler")
    before = [getattr(torch.autograd.profiler, name) for name in entrances]
    train(tmp_path, lambda step: None)
    assert [getattr(torch.autograd.profiler, name) for name in entrances] == before


def test_a_profiler_that_was_given_up_does_not_count() -> None:
    theirs = profile(activities=CPU, schedule=schedule(wait=0, warmup=1, active=1, repeat=1))
    theirs.start()
    assert other_profiler() == "is warming up"
    theirs.me = theirs  # type: ignore[attr-defined]  # without a collection it stays for ever
    del theirs
    assert other_profiler() is None


def test_a_profiler_is_seen_from_its_warm_up_to_its_end() -> None:
    assert other_profiler() is None
    with profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=1, repeat=1)) as theirs:
        seen = [other_profiler()]
        for _ in range(3):
            theirs.step()
            seen.append(other_profiler())
    assert seen == [None, "is warming up", "is recording", None]
    assert other_profiler() is None
