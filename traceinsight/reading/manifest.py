"""Finds the run manifest that ``traceinsight.capture`` (or anybody else) left beside the traces."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from traceinsight.base.notes import DataNote
from traceinsight.reading.limits import LIMITS
from traceinsight.reading.opening import open_binary
from traceinsight.reading.sources import MANIFEST_NAME


def find_manifest(directories: Iterable[str]) -> tuple[dict[str, object] | None, list[DataNote]]:
    """The first readable ``run.json`` of these folders, and notes on unreadable ones.

    Where the files lie in several folders (one per rank or node), the folder above them counts, too.
    """
    notes: list[DataNote] = []
    folders = list(dict.fromkeys(directories))
    if len(folders) > 1:
        folders += dict.fromkeys(folder.rpartition("/")[0] for folder in folders)
    for directory in folders:
        path = f"{directory}/{MANIFEST_NAME}" if directory else MANIFEST_NAME
        try:
            fields = msgspec.json.decode(_bounded(path))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            continue
        except Exception as error:  # whatever a remote file system raises, a manifest must not end the load
            message = f"{path} is no readable run manifest ({error}); analysed without it."
            notes.append(DataNote("warning", "unreadable-manifest", message, file=path))
            continue
        if isinstance(fields, dict) and "traceEvents" not in fields:
            return fields, notes
    return None, notes


def _bounded(path: str) -> bytes:
    with open_binary(path) as raw:
        text: bytes = raw.read(LIMITS.max_manifest_bytes + 1)
    if len(text) > LIMITS.max_manifest_bytes:
        raise ValueError(f"larger than {LIMITS.max_manifest_bytes >> 20} MiB")
    return text
