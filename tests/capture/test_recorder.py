"""The context manager in one process, with torch's real profiler."""

import gzip
import json
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
import torch

from traceinsight.capture import Capture


def train(capture: Capture, steps: int) -> None:
    """Square a matrix once per step."""
    with capture as recording:
        for _ in range(steps):
            torch.mm(torch.ones(4, 4), torch.ones(4, 4))
            recording.step(loss=0.5)


def captured_steps(trace: Path) -> list[str]:
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    return sorted({event["name"] for event in events if event["name"].startswith("ProfilerStep")})


def test_profiles_the_active_steps_and_files_them_by_rank(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}.items():
        monkeypatch.setenv(name, value)

    train(Capture(tmp_path / "run", wait=2, warmup=1, active=2), steps=8)

    # wait 2 (0, 1), warmup 1 (2), active 2: steps 3 and 4. Rank 5 writes no manifest.
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["rank5.pt.trace.json.gz"]
    assert captured_steps(tmp_path / "run" / "rank5.pt.trace.json.gz") == ["ProfilerStep#3", "ProfilerStep#4"]


def test_manifest_holds_the_run_and_every_step(tmp_path: Path) -> None:
    capture = Capture(tmp_path, wait=1, warmup=1, active=1, run_id="a", batch_per_rank=32)
    capture.record("faults", [{"kind": "none"}])
    capture.record("world_size", 99)

    train(capture, steps=4)

    manifest = json.loads((tmp_path / "run.json").read_text())
    assert (manifest["schema_version"], manifest["run_id"], manifest["batch_per_rank"]) == (1, "a", 32)
    assert manifest["world_size"] == 1  # what the process group says cannot be talked over
    assert manifest["faults"] == [{"kind": "none"}]
    assert manifest["sharding_plan"] is None
    assert manifest["versions"]["torch"] == torch.__version__
    assert [step["step"] for step in manifest["steps"]] == [0, 1, 2, 3]
    for step in manifest["steps"]:
        # examples/s = 32 examples / wall time; wall_ms is rounded to 0.001 ms, a step here takes some 0.05
        # ms.
        assert step["examples_per_s"] == pytest.approx(32 / (step["wall_ms"] / 1e3), rel=0.05)
        assert step["loss"] == 0.5


def test_training_that_ends_inside_the_window_still_leaves_its_trace(tmp_path: Path) -> None:
    train(Capture(tmp_path, wait=0, warmup=1, active=5), steps=3)

    # Steps 1 and 2 are complete; the window was open when training ended.
    assert {"ProfilerStep#1", "ProfilerStep#2"} <= set(captured_steps(tmp_path / "rank0.pt.trace.json.gz"))


def test_an_error_of_the_training_passes_through_and_the_manifest_is_kept(tmp_path: Path) -> None:
    def fail() -> None:
        with Capture(tmp_path, wait=0, warmup=1, active=5) as recording:
            recording.step()
            raise ZeroDivisionError("the model's own error")

    with pytest.raises(ZeroDivisionError, match="the model's own error"):
        fail()
    assert len(json.loads((tmp_path / "run.json").read_text())["steps"]) == 1


def test_a_folder_that_cannot_be_made_costs_a_note_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("in the way")
    capture = Capture(tmp_path / "file" / "run", wait=0, warmup=1, active=1)

    train(capture, steps=3)  # raises nothing

    notes = capsys.readouterr().err.splitlines()
    assert len(notes) == 1
    assert "rank 0: could not start in" in notes[0]
    assert str(tmp_path / "file" / "run") in notes[0]


def test_a_full_disk_costs_the_files_and_not_the_training(tmp_path: Path) -> None:
    # A limit on file size fails a write in the middle, as a full disk does; it is per process, hence the
    # child.
    program = textwrap.dedent(
        """
        import resource, sys, torch
        from traceinsight.capture import Capture
        with Capture(sys.argv[1], wait=0, warmup=1, active=2) as recording:
            resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))
            for _ in range(5):
                torch.mm(torch.ones(4, 4), torch.ones(4, 4))
                recording.step()
        print("trained")
        """
    )
    child = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "run")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (child.returncode, child.stdout) == (0, "trained\n"), child.stderr
    assert "could not write the trace" in child.stderr
    assert "could not write run.json" in child.stderr
    assert "ulimit -f" in child.stderr
    assert list((tmp_path / "run").iterdir()) == []
