"""The commands that write simulated traces and predict changes, end to end."""

import json
import shutil
from pathlib import Path

import msgspec
import pytest

from traceinsight.cli import main
from traceinsight.cli.simulate import _override
from traceinsight.diagnosis.prediction import WhatIf

SAMPLE = Path(__file__).resolve().parents[2] / "sample_traces" / "late_rank"


def command(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def test_a_simulated_run_is_written_with_its_truth(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    assert command("simulate", "frm_1node_h100", "-o", folder, "--set", "capture.steps=2") == 0
    names = {path.name for path in folder.iterdir()}
    assert {"run.json", "truth.json"} <= names
    assert sum(name.startswith("rank") for name in names) == 8  # one node of eight GPUs
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "simulated" in captured.err
    assert command("simulate", "frm_1node_h100", "-o", folder) == 2  # never silently overwritten


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["no_such_preset"], "no_such_preset"),
        (["frm_1node_h100", "--set", "cluster.nodez=4"], "nodez"),
        (["frm_1node_h100", "--set", "cluster.nodes"], "--set"),
    ],
)
def test_a_wrong_spec_is_a_usage_error_that_names_the_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], named: str
) -> None:
    assert command("simulate", *arguments, "-o", tmp_path / "run") == 2
    assert named in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("cluster.nodes=4", ("cluster.nodes", 4)),
        ("cluster.gpu=A100", ("cluster.gpu", "A100")),
        ('cluster.gpu="A100"', ("cluster.gpu", "A100")),
        ("jitter = 0.5", ("jitter", 0.5)),
    ],
)
def test_overrides_are_read_as_toml_else_as_text(text: str, read: tuple[str, object]) -> None:
    assert _override(text) == read


def test_whatif_shows_each_edit_on_top_of_the_last(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("whatif", SAMPLE, "-e", "no-straggler=2", "-e", "no-straggler=3", "-q") == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.startswith("no-straggler=2") and " ms" in line for line in lines)
    assert any(line.startswith("no-straggler=3") for line in lines)
    assert max(map(len, lines)) <= 80


def test_whatif_lists_its_edits_and_refuses_unknown_ones(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("whatif", SAMPLE) == 0
    assert "qcomms=fp8" in capsys.readouterr().out
    assert command("whatif", SAMPLE, "-e", "magic") == 2
    assert "magic" in capsys.readouterr().err


def test_whatif_writes_the_same_json_by_option_format_and_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit = ("whatif", SAMPLE, "-e", "no-straggler=2", "-q")
    assert command(*edit, "--json") == 0
    text = capsys.readouterr().out
    assert command(*edit, "--format", "json") == 0
    assert capsys.readouterr().out == text
    assert command(*edit, "-o", tmp_path / "answer.json") == 0
    assert (tmp_path / "answer.json").read_text() == text
    answer = msgspec.json.decode(text, type=WhatIf)
    assert [one.edit for one in answer.edits] == ["no-straggler=2"]
    assert command(*edit, "--json", "--format", "markdown") == 2
    assert "two formats" in capsys.readouterr().err


def test_json_without_an_edit_is_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert command("whatif", SAMPLE, "--json", "-q") == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["edits"] == []
    assert answer["step_ns"] > 0


def test_a_simulated_run_without_its_manifest_is_still_called_simulated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for world in (8, 4):
        per_node = f"cluster.gpus_per_node={world}"
        assert (
            command("simulate", "frm_1node_h100", "-o", tmp_path / str(world), "-q", "--set", per_node) == 0
        )
        for name in ("run.json", "truth.json"):
            (tmp_path / str(world) / name).unlink()
    assert command("analyze", tmp_path / "8", "-q", "--format", "json") == 0
    assert json.loads(capsys.readouterr().out)["run"]["simulated"] is True
    assert command("whatif", tmp_path / "8", "-q", "-e", "qcomms=fp8") == 0
    assert "Today: simulated" in capsys.readouterr().out
    assert command("scaling", tmp_path / "4", tmp_path / "8", "-q") == 0
    assert "2 simulated runs" in capsys.readouterr().out


def test_whatif_tells_of_other_runs_and_of_lost_data(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for source in sorted(SAMPLE.glob("*.json.gz")):
        shutil.copy(source, tmp_path)
    other = sorted((SAMPLE.parent / "healthy").glob("*.json.gz"))
    for source in other:
        shutil.copy(source, tmp_path / f"other_{source.name}")
    cut = sorted(tmp_path.glob("*.json.gz"))[0]
    cut.write_bytes(cut.read_bytes()[: cut.stat().st_size * 9 // 10])
    for run in ("1", "2"):
        assert command("whatif", tmp_path, "--run", run, "-q", "-e", "no-straggler=2") == 0
        text = capsys.readouterr().out
        assert "1 other run found" in text
        assert f"--run {3 - int(run)} analyses it" in " ".join(text.split())


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        ("no-straggler=0+1+2+3", "it names every captured rank"),
        ("no-straggler=99", "rank 99 was not captured"),
        ("no-straggler=2+98+99", "ranks 98, 99 were not captured"),
    ],
)
def test_ranks_that_cannot_be_mended_are_named(
    capsys: pytest.CaptureFixture[str], edit: str, said: str
) -> None:
    assert command("whatif", SAMPLE, "-q", "-e", edit) == 0
    assert said in " ".join(capsys.readouterr().out.split())
