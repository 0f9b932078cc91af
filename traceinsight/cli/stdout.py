"""Where the result goes: stdout, or a file that is never overwritten by accident."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import sys
from collections.abc import Sequence
from pathlib import Path

from traceinsight.base.errors import TraceInsightError, UsageError


def require_stdout() -> None:
    """Refuse to begin where stdout was closed by whoever started us (``>&-``). Raises TraceInsightError."""
    if sys.stdout is None:
        raise TraceInsightError("stdout is closed, so the result has no place.")


def write_stdout(text: str) -> None:
    """The result and nothing else. When nobody reads on (``| head``) the rest is dropped silently.

    Raises:
        TraceInsightError: stdout is closed or full.

    """
    require_stdout()
    data = text.encode(sys.stdout.encoding or "utf-8", "replace").decode(sys.stdout.encoding or "utf-8")
    try:
        sys.stdout.write(data)
    except OSError as error:
        _failed_on_stdout(error)
    flush_stdout()


def flush_stdout() -> None:
    """Write what is buffered. Raises TraceInsightError where it cannot be written."""
    if sys.stdout is None:
        return
    try:
        sys.stdout.flush()
    except OSError as error:
        _failed_on_stdout(error)


def _failed_on_stdout(error: OSError) -> None:
    abandon_stdout()
    if isinstance(error, BrokenPipeError):
        return  # whoever reads us has seen enough; that is no failure of ours
    raise TraceInsightError(f"cannot write the result: {_reason(error)}.", where="stdout") from error


def abandon_stdout() -> None:
    """Keep the interpreter from failing on what is buffered once more when it exits."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def check_target(path: Path, *, force: bool, inputs: Sequence[str] = ()) -> None:
    """Refuse a target before minutes of analysis are spent, not after.

    Args:
        path: Where the result is to go.
        force: Whether an existing file may be replaced.
        inputs: What the result is made from. None of it is ever replaced.

    Raises:
        UsageError: The result cannot or must not be written there.

    """
    try:
        _check_place(path)
    except OSError as error:  # a name that is too long, say
        raise _cannot_write(path, error) from error
    if not _is_precious(path):
        return
    if not force:
        raise _exists(path)
    from traceinsight.reading.protection import would_lose_input  # noqa: PLC0415 - only where it matters

    if inputs and would_lose_input(path, inputs):
        raise UsageError(
            "the output is one of the inputs and is left as it is, also with --force.",
            where=str(path),
            what_to_do="Choose another name.",
        )


def _check_place(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        path.stat()
    if path.is_dir():
        raise UsageError("the output is a folder.", where=str(path), what_to_do="Give a file name.")
    if not path.parent.is_dir():
        raise UsageError(
            "the output's folder does not exist.", where=str(path.parent), what_to_do="Create it first."
        )


def write_file(path: Path, text: str, *, force: bool) -> None:
    """Write all of it or nothing: a temporary file beside the target takes its name when it is complete."""
    try:
        if path.exists() and not path.is_file():
            _write_in_place(path, text)  # a device or pipe must not be replaced by a file
        else:
            _write_whole(path.resolve(), text, force=force)  # through a symbolic link, as an editor would
    except OSError as error:
        raise _cannot_write(path, error) from error


def _write_whole(target: Path, text: str, *, force: bool) -> None:
    # Not made from the target's name, which may be as long as a name can be.
    temporary = target.with_name(f".traceinsight-{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        _take_name(temporary, target, force=force)
    finally:
        temporary.unlink(missing_ok=True)


def _write_in_place(path: Path, text: str) -> None:
    if path.is_fifo():
        # Opening a pipe waits for a reader, perhaps for ever; with O_NONBLOCK it fails instead.
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            raise UsageError(
                "nobody reads from this pipe.", where=str(path), what_to_do="Start its reader first."
            ) from error
        os.set_blocking(descriptor, True)
    else:
        descriptor = os.open(path, os.O_WRONLY)
    with contextlib.suppress(BrokenPipeError), open(descriptor, "w", encoding="utf-8") as sink:  # noqa: PTH123 - a descriptor
        sink.write(text)


def _take_name(temporary: Path, target: Path, *, force: bool) -> None:
    if force:
        temporary.replace(target)
        return
    try:
        target.hardlink_to(temporary)  # unlike a rename it fails when somebody created the target meanwhile
    except FileExistsError:
        raise _exists(target) from None
    except OSError:  # a file system without hard links
        if target.exists():
            raise _exists(target) from None
        temporary.replace(target)


def _is_precious(path: Path) -> bool:
    return path.is_file() or (path.is_symlink() and not path.exists())


def _exists(path: Path) -> UsageError:
    return UsageError(
        "the output file exists already and is left as it is.",
        where=str(path),
        what_to_do="Choose another name, or add --force to replace it.",
    )


def _cannot_write(path: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write the output: {_reason(error)}.", where=str(path))


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
