"""Small traces with known content."""

import json
from pathlib import Path


def kernel(name="gemm", ts=1000, dur=50, stream=7, correlation=1, **args):
    place = {"device": 0, "stream": stream, "correlation": correlation, **args}
    return {
        "ph": "X",
        "cat": "kernel",
        "name": name,
        "pid": 0,
        "tid": stream,
        "ts": ts,
        "dur": dur,
        "args": place,
    }


def cpu_op(name="aten::mul", ts=1000, dur=10, external_id=1, **args):
    inputs = {"External id": external_id, **args}
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": name,
        "pid": 5,
        "tid": 6,
        "ts": ts,
        "dur": dur,
        "args": inputs,
    }


def annotation(name, ts=1000, dur=10, external_id=1, **args):
    return {**cpu_op(name, ts, dur, external_id, **args), "cat": "user_annotation"}


def trace(*events, rank=0, world_size=2, **header):
    distributed = {"backend": "nccl", "rank": rank, "world_size": world_size} if rank is not None else {}
    info = {"distributedInfo": distributed} if distributed else {}
    return {"schemaVersion": 1, **info, "traceEvents": list(events), **header}


def write(path: Path, content) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def assert_same_recording(left, right, but=("file", "notes")):
    """Equal in every field except those named."""
    for field in left.__dataclass_fields__:
        if field in (*but, "_cache", "events"):
            continue
        assert getattr(left, field) == getattr(right, field), field
    for column in left.events.__dataclass_fields__:
        assert getattr(left.events, column).tolist() == getattr(right.events, column).tolist(), column
