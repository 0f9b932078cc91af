"""Finds ranks in file names by the user's regular expression, in bounded time.

A pattern such as ``((?:a+)+)$`` takes 2^n steps on n letters, and Python cannot interrupt a match. So all
names are matched in a child process that is ended after :data:`TIME_LIMIT_S`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Sequence

from traceinsight.base.errors import UsageError

TIME_LIMIT_S = 10.0
"""A sane pattern needs microseconds per name; the rest is the start of a process on a busy machine."""

_CHILD = (
    "import json, re, sys\n"
    "pattern, names = json.load(sys.stdin)\n"
    "found = map(re.compile(pattern).search, names)\n"
    "json.dump([match[1] if match else None for match in found], sys.stdout)"
)
_RANK = re.compile(r"[0-9]{1,9}")


def check_pattern(pattern: str) -> None:
    """Raises UsageError unless it is a regular expression with exactly one group."""
    try:
        groups = re.compile(pattern).groups
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(f"{pattern!r} is no regular expression ({error}).") from error
    if groups != 1:
        raise UsageError(
            f"{pattern!r} has {groups} groups.",
            what_to_do=r"Give it exactly one, around the rank: rank(\d+).",
        )


def ranks_by_pattern(pattern: str, names: Sequence[str]) -> list[int | None]:
    """The rank of every name, None where the pattern finds no number.

    The file's own name is asked first, the folders around it only where that says nothing.

    Raises:
        UsageError: The pattern takes too long.

    """
    texts = _matches(pattern, [name.rsplit("/", 1)[-1] for name in names] + list(names))
    ranks = [int(text) if text and _RANK.fullmatch(text) else None for text in texts]
    own, whole = ranks[: len(names)], ranks[len(names) :]
    return [path if rank is None else rank for rank, path in zip(own, whole, strict=True)]


def _matches(pattern: str, names: Sequence[str]) -> list[str | None]:
    command = [sys.executable, "-I", "-S", "-c", _CHILD]
    job = json.dumps([pattern, list(names)])  # ASCII, whatever bytes the names hold
    try:
        child = subprocess.run(
            command, input=job.encode(), capture_output=True, check=False, timeout=TIME_LIMIT_S
        )
        answer: list[str | None] = json.loads(child.stdout)
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"{pattern!r} took more than {TIME_LIMIT_S:.0f} s on the file names.",
            what_to_do=r"Repeat nothing that is itself a repetition, as (a+)+ does: rank(\d+).",
        ) from None
    except (OSError, ValueError):  # no interpreter to start: an embedded one, say
        found = map(re.compile(pattern).search, names)
        return [match[1] if match else None for match in found]
    return answer
