"""Reading in child processes gives what reading in this one gives."""

import json
import subprocess
import sys

import pytest

from tests.reading.traces import assert_same_recording, kernel, trace, write
from traceinsight.reading import load, parallel


@pytest.fixture
def always_apart(monkeypatch):
    monkeypatch.setattr(parallel, "MIN_FILE_BYTES", 1)
    monkeypatch.setattr(parallel, "MIN_TOTAL_BYTES", 1)
    monkeypatch.setattr(parallel, "_processors", lambda: 2)


def two_ranks(folder):
    for rank in range(2):
        comm = {"Collective name": "allreduce"}
        write(folder / f"rank{rank}.json", trace(kernel(f"k{rank}", **comm), kernel("z", -1, -1), rank=rank))
    return folder


def test_same_recordings_as_in_process(tmp_path, always_apart, monkeypatch):
    folder = two_ranks(tmp_path)
    here = load(folder, workers=1)
    monkeypatch.setattr(parallel, "read_file", None)  # so that only children can have read
    apart = load(folder)
    for left, right in zip(apart.recordings, here.recordings, strict=True):
        assert_same_recording(left, right, but=())
        assert not left.events.start_ns.flags.writeable


def test_progress_counts_up_to_the_number_of_files(tmp_path, always_apart):
    calls = []
    load(two_ranks(tmp_path), progress=lambda *call: calls.append(call))
    assert [call[:2] for call in calls] == [(1, 2), (2, 2)]
    assert {call[2] for call in calls} == {str(tmp_path / f"rank{rank}.json") for rank in range(2)}


def test_a_killed_reader_costs_only_its_file(tmp_path, always_apart, monkeypatch):
    kill_itself_for_rank1 = (
        "import os, pickle, signal, sys; source, pattern = pickle.load(sys.stdin.buffer)\n"
        "if 'rank1' in source.path: os.kill(os.getpid(), signal.SIGKILL)\n"
        "from traceinsight.reading.read_file import read_file\n"
        "sys.stdout.buffer.write(pickle.dumps(read_file(source)))"
    )
    monkeypatch.setattr(
        parallel,
        "_START",
        "import json, sys; sys.path[:] = json.loads(sys.argv[1])\n" + kill_itself_for_rank1,
    )
    result = load(two_ranks(tmp_path))
    assert [recording.rank for recording in result.recordings] == [0]
    (note,) = result.skipped
    assert (note.code, note.file) == ("reader-killed", str(tmp_path / "rank1.json"))
    assert "signal 9" in note.message


@pytest.mark.parametrize("start", ["raise SystemExit(1)", "print('no pickle')"])
def test_children_that_cannot_start_leave_the_work_to_this_process(
    tmp_path, always_apart, monkeypatch, start
):
    monkeypatch.setattr(parallel, "_START", start)
    assert len(load(two_ranks(tmp_path)).recordings) == 2


def test_an_interpreter_that_is_not_there_leaves_the_work_to_this_process(
    tmp_path, always_apart, monkeypatch
):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    assert len(load(two_ranks(tmp_path)).recordings) == 2


def test_a_script_without_a_main_guard(tmp_path):
    folder = two_ranks(tmp_path / "traces")
    script = tmp_path / "script.py"
    script.write_text(
        f"import sys; sys.path[:] = {json.dumps(sys.path)}\n"
        "from traceinsight.reading import load, parallel\n"
        "parallel.MIN_FILE_BYTES = parallel.MIN_TOTAL_BYTES = 1\n"
        f"print(len(load({str(folder)!r}, workers=2).recordings))\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout == "2\n"
