"""Specifications that come with the package: one TOML file each, or one with a few values laid over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from types import MappingProxyType


@dataclass(frozen=True, slots=True)
class Preset:
    """Where a preset comes from: a file of this folder, and what is laid over it."""

    file: str
    overrides: Mapping[str, Mapping[str, object]] = field(default_factory=dict)


LADDER_STAGES = ("tcp", "efa", "qcomms", "balanced", "narrow", "2d_allreduce_intra", "2d_alltoall_intra")
"""The stages of the published case in the order they were applied."""

LADDER_NODES = (2, 4, 8)


def _presets() -> dict[str, Preset]:
    plain = (
        "frm_1node_h100",
        "frm_8node_efa",
        "ladder_1node",
        *(f"ladder_{stage}" for stage in LADDER_STAGES),
    )
    found = {name: Preset(f"{name}.toml") for name in plain}
    for stage in LADDER_STAGES:
        for nodes in LADDER_NODES:
            name = f"ladder_{stage}_{nodes}node"
            found[name] = Preset(f"ladder_{stage}.toml", {"cluster": {"nodes": nodes}, "name": name})  # type: ignore[dict-item]
    return found


PRESETS: Mapping[str, Preset] = MappingProxyType(_presets())
"""Name -> preset, for ``load_spec``."""


def preset_text(file: str) -> str:
    """The TOML of a preset's file."""
    return files(__name__).joinpath(file).read_text(encoding="utf-8")
