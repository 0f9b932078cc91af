"""Finds the run manifest that ``traceinsight.capture`` (or anybody else) left beside the traces."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from traceinsight.base.notes import DataNote
from traceinsight.reading.sources import MANIFEST_NAME, open_binary

_MAX_MANIFEST_BYTES = 256 << 20


def find_manifest(directories: Iterable[str]) -> tuple[dict[str, object] | None, list[DataNote]]:
    """The first readable ``run.json`` of these folders, and notes on unreadable ones."""
    notes: list[DataNote] = []
    for directory in dict.fromkeys(directories):
        path = f"{directory}/{MANIFEST_NAME}" if directory else MANIFEST_NAME
        try:
            with open_binary(path) as raw:
                fields = msgspec.json.decode(raw.read(_MAX_MANIFEST_BYTES))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            continue
        except (OSError, ValueError, RecursionError) as error:
            message = f"{path} is no readable run manifest ({error}); analysed without it."
            notes.append(DataNote("warning", "unreadable-manifest", message, file=path))
            continue
        if isinstance(fields, dict) and "traceEvents" not in fields:
            return fields, notes
    return None, notes
