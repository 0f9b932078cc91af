"""The commands that write simulated traces and predict changes, end to end."""

from pathlib import Path

import pytest

from traceinsight.cli import main
from traceinsight.cli.simulate import _override

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
