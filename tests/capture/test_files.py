"""A reader sees a whole file or none."""

import gzip
import json
import resource
import shutil
from pathlib import Path

import pytest

from traceinsight.capture.files import write_json, write_trace


def test_trace_is_published_gzipped_and_nothing_else_is_left(tmp_path: Path) -> None:
    target = tmp_path / "rank0.pt.trace.json.gz"

    write_trace(target, lambda path: Path(path).write_text('{"traceEvents": []}\n'))

    assert json.loads(gzip.decompress(target.read_bytes())) == {"traceEvents": []}
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_export_that_fails_keeps_the_earlier_file_and_no_scratch(tmp_path: Path) -> None:
    target = tmp_path / "rank0.pt.trace.json.gz"
    target.write_bytes(b"earlier")

    def export(path: str) -> None:
        Path(path).write_text('{"traceEvents": [')
        Path(path + ".tmp").write_text("what Kineto leaves behind")
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        write_trace(target, export)
    assert target.read_bytes() == b"earlier"
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


def test_export_cut_short_in_silence_is_not_published(tmp_path: Path) -> None:
    target = tmp_path / "rank0.pt.trace.json.gz"

    with pytest.raises(OSError, match="wrote 17 bytes and stopped before the end"):
        write_trace(target, lambda path: Path(path).write_text('{"traceEvents": ['))
    assert list(tmp_path.iterdir()) == []


def full(path: object) -> object:
    return shutil._ntuple_diskusage(total=10**9, used=10**9 - 40_000, free=40_000)


def export_nothing(path: str) -> None:
    """What Kineto does when it cannot write: it says so in its log, and leaves no file."""


def test_a_full_disk_is_named_where_the_profiler_left_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", full)
    with pytest.raises(OSError, match=r"left no file \(the disk is full: 0\.0 MB free there\)"):
        write_trace(tmp_path / "rank0.pt.trace.json.gz", export_nothing)
    with pytest.raises(OSError, match="left no file") as caught:
        monkeypatch.undo()
        write_trace(tmp_path / "rank0.pt.trace.json.gz", export_nothing)
    assert "is full" not in str(caught.value)  # this test's own disk has room
    assert "MB free there" in str(caught.value)


def test_a_limit_on_file_size_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda which: (2_500_000, resource.RLIM_INFINITY))
    with pytest.raises(OSError, match=r"this process may write 2\.5 MB per file: ulimit -f"):
        write_trace(tmp_path / "rank0.pt.trace.json.gz", export_nothing)


def test_json_with_a_nan_is_refused_and_keeps_the_earlier_file(tmp_path: Path) -> None:
    target = tmp_path / "run.json"
    write_json(target, {"loss": 1.0})

    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(target, {"loss": float("nan")})
    assert json.loads(target.read_text()) == {"loss": 1.0}
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
