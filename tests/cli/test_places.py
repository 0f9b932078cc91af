"""Where a result can and must not go: full and closed streams, pipes, long names, the inputs themselves."""

import gzip
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.cli.conftest import REPOSITORY, command
from tests.reading.traces import kernel, trace, write
from tests.report.diagnoses import late_rank
from traceinsight import api

Capture = pytest.CaptureFixture[str]

CODE = """
import sys
from tests.report.diagnoses import late_rank
from traceinsight import api
from traceinsight.cli import main
api.analyze = lambda *_, **__: late_rank()
sys.exit(main(sys.argv[1:]))
"""
GENEROUS_S = 120
"""For what would hang for ever if it were wrong."""


def shell(script: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Runs bash with ``$run`` for the command, whose analysis is the late-rank case."""
    return subprocess.run(
        ["bash", "-c", 'run() { "$PYTHON" -c "$CODE" "$@"; }; ' + script, "bash", *map(str, arguments)],
        env=os.environ | {"PYTHON": sys.executable, "CODE": CODE, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True, text=True, check=False, timeout=GENEROUS_S, cwd=REPOSITORY,
    )  # fmt: skip


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")


@needs_full
@pytest.mark.parametrize("call", ["analyze traces", "analyze traces -f json", "rules", "--help", "--version"])
def test_a_full_disk_behind_stdout_is_said_and_is_no_bug(call: str) -> None:
    done = shell(f"run {call} > /dev/full")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "No space left on device" in done.stderr
    assert "bug" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


@needs_full
def test_a_full_disk_behind_the_output_file_is_a_message() -> None:
    done = shell("run analyze traces -f json -o /dev/full")
    assert (done.returncode, done.stderr) == (
        2, "error: /dev/full: cannot write the output: No space left on device.\n",
    )  # fmt: skip


@pytest.mark.parametrize("call", ["analyze traces", "rules"])
def test_a_closed_stdout_is_a_message(call: str) -> None:
    done = shell(f"run {call} >&-")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == "error: stdout is closed, so the result has no place."


def test_a_closed_stdout_does_not_matter_to_a_file(tmp_path: Path) -> None:
    done = shell('run analyze traces -o "$1" >&-', tmp_path / "r.json")
    assert done.returncode == 0
    assert json.loads((tmp_path / "r.json").read_text())["schema_version"] == 1
    assert "Wrote" in done.stderr


@pytest.mark.parametrize("where", ["2>&-", pytest.param("2>/dev/full", marks=needs_full)])
def test_without_stderr_there_is_still_the_result_and_the_exit_code(where: str, tmp_path: Path) -> None:
    done = shell(f"run analyze traces {where}")
    assert (done.returncode, bool(done.stdout)) == (0, True)
    done = shell(f'run analyze traces -o "$1" {where}', tmp_path / "nowhere" / "r.json")
    assert (done.returncode, done.stdout) == (2, "")
    assert shell(f"run analyze --nonsense {where}").returncode in (1, 2)  # typer itself fails to print


@pytest.mark.parametrize("length", [255, 300, 5000])
def test_a_name_that_is_too_long_is_a_usage_error_and_the_longest_is_not(
    length: int, tmp_path: Path, calls: list[object], capsys: Capture
) -> None:
    target = tmp_path / ("a" * (length - 5) + ".json")
    code = command("analyze", "traces", "-o", str(target))
    err = capsys.readouterr().err
    if length == 255:  # the longest that Linux and macOS allow
        assert (code, target.is_file()) == (0, True)
    else:
        assert code == 2
        assert "File name too long" in err
        assert calls == []


def test_a_loop_of_links_is_a_usage_error(tmp_path: Path, calls: list[object], capsys: Capture) -> None:
    (tmp_path / "a.json").symlink_to("a.json")
    assert command("analyze", "traces", "-o", str(tmp_path / "a.json"), "--force") == 2
    assert "symbolic link" in capsys.readouterr().err


def test_a_pipe_without_a_reader_is_refused_and_one_with_a_reader_is_written(tmp_path: Path) -> None:
    pipe = tmp_path / "p.json"
    os.mkfifo(pipe)
    done = shell('run analyze traces -o "$1" --force', pipe)
    assert done.returncode == 2
    assert "nobody reads from this pipe" in done.stderr
    # Opened for reading and writing, as <> does, a pipe has its reader before the command starts.
    done = shell(
        'exec 3<>"$1"; cat <&3 > "$2" & run analyze traces -q -o "$1"; echo $?; kill %1', pipe, tmp_path / "c"
    )
    assert done.stdout == "0\n", done.stderr
    assert pipe.is_fifo()


def test_output_into_a_process() -> None:
    done = shell("run analyze traces -q -f json -o >(cat); wait $!")
    assert done.returncode == 0
    assert json.loads(done.stdout)["schema_version"] == 1


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Traces of two ranks, a manifest, an archive and an earlier report; the analysis itself is replaced."""
    made = tmp_path / "traces"
    for rank in range(2):
        write(made / f"rank{rank}.json", trace(kernel(f"k{rank}"), rank=rank))
    write(made / "run.json", {"world_size": 2})
    write(made / "empty.json", b"")
    write(made / "report.json", {"schema_version": 1})
    with zipfile.ZipFile(made / "more.zip", "w") as archive:
        archive.writestr("rank2.json", json.dumps(trace(kernel("k2"), rank=2)))
    monkeypatch.setattr(api, "analyze", lambda *_, **__: late_rank())
    return made


@pytest.mark.parametrize("name", ["rank0.json", "run.json", "empty.json", "more.zip"])
@pytest.mark.parametrize("named", ["folder", "glob", "file"])
def test_an_input_is_never_replaced(name: str, named: str, folder: Path, capsys: Capture) -> None:
    inputs = {
        "folder": str(folder),
        "glob": str(folder / "*"),
        "file": str(folder / ("rank0.json" if name == "run.json" else name)),
    }
    before = (folder / name).read_bytes()
    assert command("analyze", inputs[named], "-f", "json", "-o", str(folder / name), "--force") == 2
    assert "one of the inputs" in capsys.readouterr().err
    assert (folder / name).read_bytes() == before


def test_an_input_is_recognised_under_another_name(folder: Path, capsys: Capture) -> None:
    link = folder.parent / "link.json"
    link.symlink_to(folder / "rank0.json")
    assert command("analyze", str(folder), "-o", str(link), "--force") == 2
    assert command("analyze", str(link), "-o", str(folder / "rank0.json"), "--force") == 2
    assert capsys.readouterr().err.count("one of the inputs") == 2


def test_the_manifest_above_the_folders_of_the_ranks_is_an_input(folder: Path, capsys: Capture) -> None:
    write(folder.parent / "run.json", {"world_size": 2})
    assert command("analyze", str(folder), "-o", str(folder.parent / "run.json"), "--force") == 2
    assert "one of the inputs" in capsys.readouterr().err


def test_an_earlier_result_beside_the_traces_may_be_replaced(folder: Path) -> None:
    for inputs in (str(folder), str(folder / "*.json")):
        assert command("analyze", inputs, "-o", str(folder / "report.json"), "--force", "-q") == 0
    assert json.loads((folder / "report.json").read_text())["verdict"] == late_rank().verdict


def test_a_trace_that_is_no_input_may_be_replaced(folder: Path) -> None:
    assert (
        command("analyze", str(folder / "rank1.json"), "-o", str(folder / "rank0.json"), "--force", "-q") == 0
    )


def test_an_exported_trace_beside_the_traces_is_no_input_and_may_be_replaced(
    tmp_path: Path, capsys: Capture
) -> None:
    folder = tmp_path / "traces"
    for rank in range(2):
        write(folder / f"rank{rank}.json", trace(kernel(f"k{rank}"), rank=rank))
    call = ("export", str(folder), "-q", "--workers", "1", "-o")
    assert command(*call, str(folder / "all.json.gz")) == 0
    assert command("analyze", str(folder / "all.json.gz")) == 3
    assert "written by traceinsight export" in capsys.readouterr().err
    before = gzip.decompress((folder / "all.json.gz").read_bytes())
    assert command(*call, str(folder / "all.json.gz"), "--force") == 0
    assert gzip.decompress((folder / "all.json.gz").read_bytes()) == before
    (folder / "rank0.json").rename(folder / "rank0.json.gz")
    assert command(*call, str(folder / "rank0.json.gz"), "--force") == 2
    assert "one of the inputs" in capsys.readouterr().err


def test_an_empty_path_is_called_one(capsys: Capture) -> None:
    assert command("analyze", "") == 2
    assert "An empty path was named" in capsys.readouterr().err
