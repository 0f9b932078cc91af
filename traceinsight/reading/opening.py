"""Opens what a path stands for, never waiting for a writer: regular files, pipes handed to us, URLs."""

from __future__ import annotations

import errno
import os
import re
import stat
from typing import IO, Any

_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.-]+::?//|^[A-Za-z][A-Za-z0-9+.-]+://|::")
_DESCRIPTOR = re.compile(r"/dev/stdin|/(?:dev|proc/self)/fd/(\d{1,6})")
_ODD_KINDS = (
    (stat.S_ISFIFO, "a named pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class NotAFileError(OSError):
    """The path names a pipe, device or socket: reading it may never end, or never begin."""


def is_url(path: str) -> bool:
    """Whether ``path`` is an fsspec URL such as ``s3://bucket/key``."""
    return _URL.match(path) is not None


def open_binary(path: str) -> Any:
    """Opens a local path or fsspec URL.

    Raises:
        NotAFileError: The path names something that is neither a regular file nor a pipe handed to us.
        IsADirectoryError: It is a folder.
        OSError: The system says no.

    """
    if not is_url(path):
        return _open_local(path)
    import fsspec  # noqa: PLC0415  only URLs need it, and it is slow to import

    return fsspec.open(path, "rb", compression=None)


def pipe_descriptor(path: str) -> int | None:
    """The descriptor of ``/dev/stdin`` or ``<(command)``, if that is a pipe; it can be read once only."""
    found = _DESCRIPTOR.fullmatch(path)
    if not found:
        return None
    descriptor = int(found[1] or 0)
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return None
    return descriptor if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) else None


def odd_kind(mode: int) -> str | None:
    """What to call a file of this ``st_mode`` that is neither a regular file nor a folder."""
    return next((name for is_kind, name in _ODD_KINDS if is_kind(mode)), None)


def _open_local(path: str) -> IO[bytes]:
    pipe = pipe_descriptor(path)
    if pipe is not None:
        return os.fdopen(os.dup(pipe), "rb")
    # Without O_NONBLOCK the call itself would wait for somebody to write into a named pipe.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        mode = os.fstat(descriptor).st_mode
        kind = odd_kind(mode)
        if kind is not None:
            raise NotAFileError(f"{kind}, no file")
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise
