"""Writing files so that a reader sees a whole file or none."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

try:
    import resource
except ImportError:  # a system without such limits
    resource = None  # type: ignore[assignment]

SCARCE_BYTES = 16 << 20
"""Less free space than this is taken for the cause: it is about a plain trace of one step of a GPU job."""


def _scratch(target: Path) -> tempfile.TemporaryDirectory[str]:
    """Return a scratch folder beside ``target`` that is removed afterwards, whatever happened.

    It lies in the same folder because a rename is atomic only inside one file system, and it is a folder
    because Kineto puts a temporary file of its own beside the file it writes and leaves it there when it
    fails. Its name starts with a dot, so nobody who collects traces takes it for one.
    """
    return tempfile.TemporaryDirectory(
        dir=target.parent, prefix=f".{target.name}.", ignore_cleanup_errors=True
    )


def write_json(target: Path, content: object) -> None:
    """Write ``content`` as JSON.

    Raises OSError, and ValueError for a NaN or infinity, which JSON cannot hold.
    """
    text = json.dumps(content, indent=1, allow_nan=False)
    with _scratch(target) as folder, _causes_named(target.parent):
        path = Path(folder, target.name)
        path.write_text(text + "\n", encoding="utf-8")
        path.replace(target)


def write_trace(target: Path, export: Callable[[str], object]) -> None:
    """Let ``export`` write plain JSON to a scratch file and publish it gzipped as ``target``.

    Raises OSError, with what is known of the disk.
    """
    with _scratch(target) as folder, _causes_named(target.parent):
        plain, packed = Path(folder, target.stem), Path(folder, target.name)
        export(str(plain))
        _check_whole(plain)
        with plain.open("rb") as source, gzip.open(packed, "wb", compresslevel=6) as sink:
            shutil.copyfileobj(source, sink, length=1 << 20)
        packed.replace(target)


def _check_whole(path: Path) -> None:
    """Raise OSError unless ``path`` ends like a JSON object.

    The profiler does not report a write that failed: it leaves a part of the file, or removes that too.
    """
    if not path.exists():
        raise OSError("the profiler left no file")
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 64))
        tail = file.read().rstrip()
    if not tail.endswith(b"}"):
        raise OSError(f"the profiler wrote {size:,} bytes and stopped before the end")


@contextmanager
def _causes_named(folder: Path) -> Iterator[None]:
    """Add to an OSError what the disk of ``folder`` and the limits of this process say about its cause.

    Looked at before the scratch files are removed, which would give their space back.
    """
    try:
        yield
    except OSError as error:
        facts = "; ".join([*_space(folder), *_size_limit()])
        raise OSError(f"{error} ({facts})" if facts else str(error)) from error


def _space(folder: Path) -> Iterator[str]:
    with suppress(OSError):
        free_bytes = shutil.disk_usage(folder).free
        full = "the disk is full: " if free_bytes < SCARCE_BYTES else ""
        yield f"{full}{free_bytes / 1e6:,.1f} MB free there"


def _size_limit() -> Iterator[str]:
    if resource is None:
        return
    limit_bytes, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit_bytes != resource.RLIM_INFINITY:
        yield f"this process may write {limit_bytes / 1e6:,.1f} MB per file: ulimit -f"
