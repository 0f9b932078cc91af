"""Where the result goes: stdout, or a file that is never overwritten by accident."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from traceinsight.base.errors import UsageError


def write_stdout(text: str) -> None:
    """The result and nothing else. When nobody reads on (``| head``) the rest is dropped silently."""
    data = text.encode(sys.stdout.encoding or "utf-8", "replace").decode(sys.stdout.encoding or "utf-8")
    try:
        sys.stdout.write(data)
        sys.stdout.flush()
    except BrokenPipeError:
        _abandon_stdout()  # whoever reads us has seen enough; that is no failure of ours


def _abandon_stdout() -> None:
    """Keep the interpreter from complaining about the closed pipe once more when it exits."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def check_target(path: Path, *, force: bool) -> None:
    """Refuse a target before minutes of analysis are spent, not after. Raises UsageError."""
    if path.is_dir():
        raise UsageError("the output is a folder.", where=str(path), what_to_do="Give a file name.")
    if not path.parent.is_dir():
        raise UsageError(
            "the output's folder does not exist.", where=str(path.parent), what_to_do="Create it first."
        )
    if _is_precious(path) and not force:
        raise _exists(path)


def write_file(path: Path, text: str, *, force: bool) -> None:
    """Write all of it or nothing: a temporary file beside the target takes its name when it is complete."""
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8")  # a device or pipe must not be replaced by a file
        return
    target = path.resolve()  # through a symbolic link, as an editor would
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        _take_name(temporary, target, force=force)
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"cannot write the output: {reason}.", where=str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


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
