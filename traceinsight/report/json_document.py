"""The machine-readable report: the ``Diagnosis`` itself, as docs/json.md and its schema describe it."""

from __future__ import annotations

import json

import msgspec

from traceinsight.diagnosis import Diagnosis
from traceinsight.report.options import ReportOptions


def render(diagnosis: Diagnosis, options: ReportOptions) -> str:  # noqa: ARG001 - the reporters' common shape
    """The diagnosis as :func:`to_json` writes it."""
    return to_json(diagnosis)


def to_json(document: msgspec.Struct) -> str:
    """Indented JSON with a stable order of keys, ``schema_version`` first.

    Only ASCII is written: names out of traces may hold terminal control codes that JSON lets pass (C1).
    """
    fields = msgspec.to_builtins(document, str_keys=True)
    version = fields.pop("schema_version")
    return json.dumps({"schema_version": version, **fields}, indent=2, allow_nan=False) + "\n"


def read(text: str | bytes) -> Diagnosis:
    """Back from :func:`render`'s text; raises ``msgspec.ValidationError`` on anything else."""
    return msgspec.json.decode(text, type=Diagnosis)
