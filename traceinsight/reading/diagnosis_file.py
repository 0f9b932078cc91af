"""Reads back a diagnosis that ``analyze --format json`` wrote: a baseline that outlives its traces."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from traceinsight.base.errors import UnreadableInputError
from traceinsight.diagnosis import SCHEMA_VERSION, Diagnosis

MAX_BYTES = 256 * 1024 * 1024
"""A report of 1,000 ranks has some tens of megabytes."""

OUR_REPORT = re.compile(rb'"generator"\s*:\s*\{\s*"name"\s*:\s*"traceinsight"')
"""In the first bytes of what this program writes as JSON."""

_HEAD_BYTES = 256
_LONGEST_NS = 2**53
"""A step of 104 days; what is longer, or negative, was not measured."""


class _Head(msgspec.Struct):
    """What tells our documents from each other and from anybody else's JSON."""

    schema_version: int
    generator: dict[str, object]
    verdict: str
    before: msgspec.Raw = msgspec.Raw()  # of a comparison
    points: msgspec.Raw = msgspec.Raw()  # of a scaling


def read_diagnosis(path: Path) -> Diagnosis | None:
    """The diagnosis in a JSON file; None where the file is something else, such as a trace.

    Raises:
        UnreadableInputError: It is a document of this program, but not a diagnosis that can be used.

    """
    head = _head(path)
    if head is None:
        return None
    if head.schema_version != SCHEMA_VERSION:
        raise _unusable(
            path,
            f"is a document of schema version {head.schema_version}; this program reads {SCHEMA_VERSION}.",
        )
    if bytes(head.before) or bytes(head.points):
        command = "compare" if bytes(head.before) else "scaling"
        raise _unusable(path, f"is what traceinsight {command} wrote, not the diagnosis of one run.")
    try:
        diagnosis = msgspec.json.decode(path.read_bytes(), type=Diagnosis)
    except (msgspec.ValidationError, RecursionError) as error:
        raise _unusable(path, f"is no whole diagnosis: {error}.") from None
    if not _plausible(diagnosis):
        raise _unusable(path, "is no diagnosis: it holds a duration or another number that cannot be.")
    return diagnosis


def _head(path: Path) -> _Head | None:
    try:
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            return None
        with path.open("rb") as stream:
            beginning = stream.read(_HEAD_BYTES)
        if b'"schema_version"' not in beginning:
            return None
        head = msgspec.json.decode(path.read_bytes(), type=_Head)
    except (OSError, ValueError, RecursionError) as error:  # ValueError: a NUL in the name, bad JSON
        if isinstance(error, msgspec.DecodeError | RecursionError) and OUR_REPORT.search(beginning):
            raise _unusable(path, f"is a damaged report of traceinsight: {error}.") from None
        return None
    return head if head.generator.get("name") == "traceinsight" else None


def _plausible(diagnosis: Diagnosis) -> bool:
    durations: list[int] = []
    for row in diagnosis.partition:
        durations += [row.window_ns, row.compute_ns, row.exposed_comm_transfer_ns, row.exposed_comm_wait_ns]
        durations += [row.exposed_comm_unsplit_ns, row.exposed_copy_ns, row.idle_ns]
        durations += row.idle_by_cause_ns.values()
    durations += [step.cpu_ns for step in diagnosis.step_times if step.cpu_ns is not None]
    for kind in diagnosis.communication:
        durations += [kind.exposed_ns, *(kind.exposed_by_step_ns or ())]
    return all(0 <= one <= _LONGEST_NS for one in durations) and _computable(diagnosis)


def _computable(diagnosis: Diagnosis) -> bool:
    """Whether every whole number in it fits 64 bits: one of 400 digits fits no float."""
    left: list[object] = [msgspec.to_builtins(diagnosis)]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            return False
    return True


def _unusable(path: Path, what: str) -> UnreadableInputError:
    return UnreadableInputError(
        what, where=str(path), what_to_do="Write it anew with: traceinsight analyze TRACES --format json"
    )
