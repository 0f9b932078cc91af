"""Writing files so that a reader sees a whole file or none."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def scratch(target: Path) -> Iterator[Path]:
    """Give a scratch path beside ``target`` and remove it afterwards, whatever happened.

    It lies in the same folder because a rename is atomic only inside one file system. Its name starts with a
    dot and ends in ``.tmp``, so nobody who collects traces takes it for one.
    """
    path = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield path
    finally:
        with contextlib.suppress(OSError):
            path.unlink(missing_ok=True)


def write_json(target: Path, content: object) -> None:
    """Write ``content`` as JSON.

    Raises OSError, and ValueError for a NaN or infinity, which JSON cannot hold.
    """
    text = json.dumps(content, indent=1, allow_nan=False)
    with scratch(target) as path:
        path.write_text(text + "\n", encoding="utf-8")
        path.replace(target)


def write_trace(target: Path, export: Callable[[str], object]) -> None:
    """Let ``export`` write plain JSON to a scratch file, then publish it gzipped as ``target``.

    Raises OSError.
    """
    with scratch(target.with_suffix("")) as plain, scratch(target) as packed:
        export(str(plain))
        _check_whole(plain)
        with plain.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as sink:
            shutil.copyfileobj(source, sink, length=1 << 20)
        packed.replace(target)


def _check_whole(path: Path) -> None:
    """Raise OSError unless ``path`` ends like a JSON object.

    The profiler does not report a write that failed.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 64))
        tail = file.read().rstrip()
    if not tail.endswith(b"}"):
        raise OSError(f"the profiler wrote {size} bytes and stopped before the end (is the disk full?)")
