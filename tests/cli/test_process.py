"""The command as a process: what only shows when pipes and the interpreter are real."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import REPOSITORY

# Answers with 256 ranks without reading anything, so that the output is larger than a pipe holds.
COMMAND = """
import sys
from tests.report.diagnoses import many_ranks
from traceinsight import api
from traceinsight.cli import main
api.analyze = lambda *_, **__: many_ranks()
sys.exit(main(sys.argv[1:]))
"""
ENVIRONMENT = os.environ | {"COLUMNS": "80", "PYTHONPATH": str(REPOSITORY)}


def start(*arguments: str, **environment: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", COMMAND, *arguments],
        cwd=REPOSITORY, env=ENVIRONMENT | environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_a_reader_that_stops_early_causes_no_noise() -> None:
    with start("analyze", "traces", "--format", "json") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(1) == b"{"
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 0


def test_a_pipe_gets_no_colour_and_no_progress() -> None:
    with start("analyze", "traces") as process:
        out, err = process.communicate()
    assert process.returncode == 0
    assert b"\x1b" not in out
    assert err == b""


def test_a_screen_without_unicode_gets_a_readable_report() -> None:
    with start("analyze", "traces", PYTHONIOENCODING="ascii") as process:
        out, err = process.communicate()
    assert process.returncode == 0, err
    assert out.isascii()
    assert b"77 late" in out


@pytest.mark.parametrize("heavy", ["pandas", "numpy", "msgspec", "torch", "traceinsight.reading"])
def test_help_imports_nothing_heavy(heavy: str) -> None:
    code = (
        "import sys\nfrom traceinsight.cli import main\n"
        f"assert main(['analyze', '--help']) == 0\nsys.exit({heavy!r} in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, env=ENVIRONMENT, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_importing_the_package_does_not_import_typer() -> None:
    code = "import sys, traceinsight, traceinsight.cli; sys.exit('typer' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, env=ENVIRONMENT, check=False)
    assert done.returncode == 0


def test_the_real_api_is_behind_the_command(tmp_path: Path) -> None:
    code = "import sys; from traceinsight.cli import main; sys.exit(main(sys.argv[1:]))"
    sample = REPOSITORY / "sample_traces" / "late_rank"
    done = subprocess.run(
        [sys.executable, "-c", code, "analyze", str(sample), "--format", "markdown"],
        cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "ank 2" in done.stdout.splitlines()[0]
