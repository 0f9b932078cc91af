"""A reader sees a whole file or none."""

import gzip
import json
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

    with pytest.raises(OSError, match="wrote 17 bytes and stopped"):
        write_trace(target, lambda path: Path(path).write_text('{"traceEvents": ['))
    assert list(tmp_path.iterdir()) == []


def test_json_with_a_nan_is_refused_and_keeps_the_earlier_file(tmp_path: Path) -> None:
    target = tmp_path / "run.json"
    write_json(target, {"loss": 1.0})

    with pytest.raises(ValueError, match="JSON compliant"):
        write_json(target, {"loss": float("nan")})
    assert json.loads(target.read_text()) == {"loss": 1.0}
    assert [path.name for path in tmp_path.iterdir()] == [target.name]
