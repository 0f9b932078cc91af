"""What a job hands over by mistake costs that value, never the training, the trace or all of run.json."""

import json
import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from traceinsight.capture import Capture
from traceinsight.capture.meter import TableMeter
from traceinsight.capture.values import as_json


def capture(folder: Path, **arguments: Any) -> Capture:
    return Capture(folder, wait=1, warmup=1, active=1, **arguments)


def run(folder: Path, values: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    """Four steps with ``values``; the trace must be there, whatever they are."""
    with capture(folder, **arguments) as recording:
        for _ in range(4):
            recording.step(**values)
    assert (folder / "rank0.pt.trace.json.gz").exists()
    manifest: dict[str, Any] = json.loads((folder / "run.json").read_text())
    return manifest


@pytest.mark.parametrize(
    "loss",
    [
        torch.tensor(0.5),
        torch.tensor([[0.5]]),
        torch.tensor(0.5, requires_grad=True) * 1,
        torch.nn.Parameter(torch.tensor(0.5)),
        np.float32(0.5),
        np.array([0.5]),
    ],
)
def test_a_number_in_any_dress_is_a_number(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], loss: Any
) -> None:
    assert [step["loss"] for step in run(tmp_path, {"loss": loss})["steps"]] == [0.5] * 4
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("loss", "why"),
    [
        ("abc", "of type str, not a number"),
        (torch.ones(3), "a tensor of 3 values, not a number"),
        (np.ones(3), "of type ndarray, not a number"),
        ([0.5], "of type list, not a number"),
        (1j, "of type complex, not a number"),
    ],
)
def test_what_is_no_number_costs_itself_and_one_note(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], loss: Any, why: str
) -> None:
    manifest = run(tmp_path, {"loss": loss, "rate": 0.25, "examples": loss})
    assert [(step["loss"], step["rate"]) for step in manifest["steps"]] == [(None, 0.25)] * 4
    assert [step["examples_per_s"] for step in manifest["steps"]] == [None] * 4
    notes = [f"left {name} out of run.json: {why}" for name in ("examples", "loss")]
    assert manifest["capture"]["notes"] == notes
    assert capsys.readouterr().err == "".join(f"traceinsight.capture: rank 0: {note}\n" for note in notes)


def test_a_tensor_is_not_read_inside_a_step_and_keeps_its_value_of_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Reading makes the host wait for a GPU. A sum that is added to in place is another number later on.
    read: list[int] = []
    item = torch.Tensor.item
    monkeypatch.setattr(torch.Tensor, "item", lambda tensor: read.append(1) or item(tensor))
    total = torch.zeros(())
    with capture(tmp_path) as recording:
        for _ in range(3):
            total += 1
            recording.step(loss=total)
            if recording._step < 3:  # at 3 the window closes and run.json is written
                assert read == []
    assert [step["loss"] for step in json.loads((tmp_path / "run.json").read_text())["steps"]] == [1, 2, 3]
    assert len(read) == 3  # each once, although run.json was written twice


def test_other_ranks_keep_no_tensors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RANK", "1")
    recording = capture(tmp_path)
    recording.step(loss=torch.zeros(()))
    assert "loss" not in recording._log.describe()[0]


def test_names_of_the_schema_may_be_measured_and_do_no_harm(tmp_path: Path) -> None:
    steps = run(tmp_path, {"step": 99, "wall_ms": -1})["steps"]
    assert [step["step"] for step in steps] == [0, 1, 2, 3]
    assert min(step["wall_ms"] for step in steps) >= 0


def test_a_configuration_is_told_as_far_as_json_goes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    itself: list[Any] = []
    itself.append(itself)
    config = {
        "path": Path("data") / "clicks",
        "rate": math.nan,
        "dtype": torch.bfloat16,
        "seeds": (1, np.int64(2)),
        "nested": {7: torch.tensor(3), "bad": object()},
        "itself": itself,
        "wide": 1 << 70,
    }
    manifest = run(tmp_path, {}, config=config)
    said = manifest["config"]
    assert (said["path"], said["rate"], said["dtype"]) == ("data/clicks", None, "torch.bfloat16")
    assert (said["seeds"], said["nested"]) == ([1, 2], {"7": 3, "bad": None})
    assert isinstance(said["seeds"][1], int)
    assert said["wide"] is None
    notes = capsys.readouterr().err
    assert "left config.rate out of run.json: nan" in notes
    assert "left config.nested.bad out of run.json: of type object" in notes
    assert "nested in more than 40 levels" in notes
    assert "left config.wide out of run.json: an integer of 71 bits" in notes


def test_what_is_recorded_may_be_anything(tmp_path: Path) -> None:
    recording = capture(tmp_path)
    recording.record("good", [1])
    recording.record("bad", math.inf)
    recording.record(["no name"], 1)  # type: ignore[arg-type]
    recording.measured("first", loss=1.0)  # type: ignore[arg-type]
    with recording:
        recording.step()
    manifest = json.loads((tmp_path / "run.json").read_text())
    assert (manifest["good"], manifest["bad"], manifest["['no name']"]) == ([1], None, 1)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"tables": [SimpleNamespace(name="t")]}, "tables"),
        ({"tables": 7}, "tables"),
        ({"plan": object()}, "sharding_plan"),
        ({"estimates": [object()]}, "planner_estimates"),
        ({"batch_per_rank": "many"}, None),
        ({"measure": object()}, "measured_tables"),
    ],
)
def test_a_description_that_fails_costs_itself_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: dict[str, Any], field: str | None
) -> None:
    manifest = run(tmp_path, {}, **arguments)  # asserts that the trace is there
    assert (manifest["world_size"], len(manifest["steps"])) == (1, 4)
    assert len(manifest["capture"]["notes"]) == 1
    assert "rank 0: " in capsys.readouterr().err
    if field is not None:
        assert manifest[field] is None


def test_tables_that_cannot_be_counted_do_not_stop_the_forward() -> None:
    model, lookup, failed = torch.nn.Module(), torch.nn.Identity(), []
    model._lookups = [lookup]  # type: ignore[assignment]
    meter = TableMeter(model, failed.append)
    meter.counting = True
    assert torch.equal(lookup(torch.ones(2)), torch.ones(2))  # no features, of which to take lengths
    assert len(failed) == 1
    assert not meter.counting


def test_a_closed_stderr_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", None)
    assert run(tmp_path, {"loss": "abc"})["capture"]["notes"]


def test_json_is_made_of_what_reading_raises_too() -> None:
    class Config(dict[str, int]):
        def items(self) -> Any:
            raise RuntimeError("gone")

    said: list[tuple[str, str]] = []
    assert as_json([Config()], "config", lambda *found: said.append(found)) == [None]
    assert said == [("config[0]", "gone")]
