"""What the user is told on stderr. Plain text: it goes into logs as often as onto a screen."""

from __future__ import annotations

import contextlib
import sys
import unicodedata


def print_error(what: str, *, where: str | None = None, what_to_do: str | None = None) -> None:
    """``error: WHERE: WHAT``, and on the next line what to do."""
    _print(f"error: {where}: {what}" if where else f"error: {what}")
    if what_to_do:
        _print(f"  {what_to_do}")


def print_note(text: str) -> None:
    """A line that is no part of the result."""
    _print(text)


def _print(text: str) -> None:
    """One line. Messages quote file names and file contents, which may hold anything."""
    if sys.stderr is None:  # closed by whoever started us: 2>&-
        return
    line = "".join(" " if unicodedata.category(one) in _INVISIBLE else one for one in text)
    encoding = sys.stderr.encoding or "utf-8"
    with contextlib.suppress(OSError):  # a full disk: there is nowhere left to say so
        print(line.encode(encoding, "replace").decode(encoding), file=sys.stderr)  # noqa: T201 - stderr is this module's business


_INVISIBLE = {"Cc", "Cf", "Cs", "Zl", "Zp"}
