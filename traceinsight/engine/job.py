"""Facts about the job from its run manifest and the traces' host names.

Anybody may have written the manifest. A part that is not as docs/capture.md has it is left out and named in a
note; it costs none of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from traceinsight.advice.job import JobFacts, Table
from traceinsight.base.hardware import NETWORKS
from traceinsight.base.manifest.cluster import named_network
from traceinsight.base.manifest.decode import Kind, Word, converted
from traceinsight.base.manifest.tables import ManifestTable
from traceinsight.base.notes import DataNote
from traceinsight.trace.nodes import node_layout
from traceinsight.trace.trace_set import TraceSet

NUMBER_FORMATS = ("fp32", "fp16", "bf16", "fp8", "int8")
"""Formats a manifest may name for values on the wire."""

PATH_VARIABLES = (
    "NCCL_NET", "NCCL_IB_DISABLE", "FI_PROVIDER", "NCCL_SOCKET_NTHREADS", "NCCL_NSOCKS_PERTHREAD",
)  # fmt: skip


class _Wire(msgspec.Struct):
    format: Word


def job_facts(trace_set: TraceSet) -> tuple[JobFacts, list[DataNote]]:
    """The facts, and notes on what of the manifest could not be used."""
    parts = _Parts(trace_set.manifest or {})
    layout = node_layout(trace_set)
    if layout.unusable is not None:
        parts.unusable.append(f"nodes ({layout.unusable})")
    network = parts.take(str, "hardware", "network")
    if network is not None and network not in NETWORKS:
        parts.unusable.append("hardware.network (not one of " + ", ".join(NETWORKS) + ")")
    facts = JobFacts(
        node_of=layout.node_of if layout.whole else None,
        network=named_network(trace_set.manifest or {}),
        environment=_environment(parts),
        tables=tuple(
            Table(one.rows, one.dim, max(1, len(one.features)))
            for one in parts.take(list[ManifestTable], "tables") or ()
        ),
        wire_formats=_wire_formats(parts),
        ids_sent_ahead=any(
            "start_sparse_data_dist" in name for trace in trace_set.ranks for name in trace.recording.strings
        ),
    )
    return facts, parts.notes()


class _Parts:
    """Reads parts of a manifest by path, and remembers which were there but not usable."""

    def __init__(self, manifest: Mapping[str, object]) -> None:
        self._manifest = manifest
        self.unusable: list[str] = []

    def take(self, kind: type[Kind], *path: str) -> Kind | None:
        """The value at the path, or None when it is absent, null or of another kind.

        A list counts as a whole: a sum over those of its entries that can be read would mislead.
        """
        value: Any = self._manifest
        for depth, key in enumerate(path):
            if value is not None and not isinstance(value, Mapping):
                self.unusable.append(".".join(path[:depth]))
                return None
            value = value.get(key) if value is not None else None
        if value is None:
            return None
        found = converted(value, kind)
        if found is None:
            self.unusable.append(".".join(path))
        return found

    def notes(self) -> list[DataNote]:
        """One note that names all that was left out."""
        if not self.unusable:
            return []
        named = list(dict.fromkeys(self.unusable))
        message = f"Not as documented in the run manifest, so advice does without: {', '.join(named)}."
        return [DataNote("warning", "malformed-manifest", message, count=len(named))]


def _environment(parts: _Parts) -> dict[str, str]:
    found = {name: parts.take(Word, "environment", name) for name in PATH_VARIABLES}
    return {name: value for name, value in found.items() if value is not None}


def _wire_formats(parts: _Parts) -> dict[str, str]:
    """By what the training job counted (``wire``), else by how it was configured (``qcomms``)."""
    found = {}
    for phase in ("forward", "backward"):
        wire = parts.take(_Wire, "wire", phase)
        name = wire.format if wire is not None else parts.take(str, "qcomms", phase)
        if name in NUMBER_FORMATS:
            found[phase] = name
        elif name is not None:
            parts.unusable.append(f"{phase} number format (not one of {', '.join(NUMBER_FORMATS)})")
    return found
