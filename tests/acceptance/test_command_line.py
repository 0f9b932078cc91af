"""The command as a user meets it: verdict first, the result on stdout, documents that parse."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.builders import MS, JobBuilder, Late

COMMAND = "import sys; from traceinsight.cli import main; sys.exit(main())"
# The contract of the issue: key -> keys of its object, or of its rows.
CONTRACT = {
    "run": "world_size ranks missing_ranks device backend steps dropped_steps other_runs",
    "partition": "rank step window_ns compute_ns exposed_comm_transfer_ns exposed_comm_wait_ns "
    "exposed_comm_unsplit_ns exposed_copy_ns idle_ns idle_by_cause_ns",
    "forward": "rank step span_ns comm_ns exposed_comm_ns exposed_transfer_ns exposed_wait_ns "
    "exposed_unsplit_ns largest_collective",
    "collectives": "op group step ranks unmatched_ranks bytes dtype transfer_ns wait_ns bus_gbps",
    "clocks": "rank offset_ns residual_ns",
    "stragglers": "ranks last_share lateness_ns ceiling_ns cause confidence",
    "findings": "rule severity confidence title ranks evidence gain action quality_risk",
    "roadmap": "rule",
}


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"COLUMNS": "80", "NO_COLOR": "1"}
    command = [sys.executable, "-c", COMMAND, "analyze", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120, env=environment)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return JobBuilder(late=(Late(1, 2 * MS),)).build().write(tmp_path_factory.mktemp("late"))


def test_json_on_stdout_keeps_the_contract(folder: Path) -> None:
    done = analyze(str(folder), "--format", "json")
    assert done.returncode == 0
    document = json.loads(done.stdout)
    assert document["schema_version"] == 1
    assert document["verdict"]
    for key, expected in CONTRACT.items():
        rows = document[key] if isinstance(document[key], list) else [document[key]]
        assert rows, key
        assert all(set(expected.split()) <= set(row) for row in rows), key
    for key in ("not_judged", "data_quality"):
        assert isinstance(document[key], list)


def test_the_verdict_comes_first_in_the_terminal_and_in_markdown(folder: Path) -> None:
    verdict = json.loads(analyze(str(folder), "--format", "json").stdout)["verdict"]
    for arguments in ((), ("--format", "markdown")):
        done = analyze(str(folder), *arguments)
        assert done.returncode == 0
        text = " ".join(done.stdout.replace("*", "").replace("\\", "").lstrip("# \n").split())
        assert text.startswith(verdict.split(",")[0].split("(")[0].strip()[:60])


def test_without_a_terminal_there_is_no_colour_and_no_line_over_80_columns(folder: Path) -> None:
    done = analyze(str(folder))
    assert "\x1b" not in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 80


def test_a_file_can_take_the_result(folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "answer.json"
    done = analyze(str(folder), "--format", "json", "-o", str(target))
    assert done.returncode == 0
    assert json.loads(target.read_text())["schema_version"] == 1
    assert not done.stdout.strip().startswith("{")


def test_an_unknown_format_is_a_usage_error(folder: Path) -> None:
    done = analyze(str(folder), "--format", "nonsense")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
