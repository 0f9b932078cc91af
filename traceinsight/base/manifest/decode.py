"""Checked conversion of one part of a run manifest, and the kinds of numbers and words it may hold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta

MAX_TABLE_NAME = 512
"""Characters. A longer name is no name of a table."""

Rank = Annotated[int, Meta(ge=0, lt=1 << 24)]
Size = Annotated[int, Meta(gt=0, le=1 << 48)]
Place = Annotated[int, Meta(ge=0, le=1 << 48)]
Amount = Annotated[float, Meta(ge=0, le=1e15)]
Word = Annotated[str, Meta(max_length=256)]
Kind = TypeVar("Kind")


def converted(value: Any, kind: type[Kind]) -> Kind | None:
    """The value as this kind; None where it is of another."""
    try:
        return msgspec.convert(value, kind, str_keys=True)
    except (msgspec.ValidationError, RecursionError, OverflowError):
        return None


def entries(section: object, kind: type[Kind]) -> tuple[dict[str, Kind], int]:
    """(the entries of a section by table that are of this kind, how many are not). No section: nothing."""
    if section is None:
        return {}, 0
    if not isinstance(section, Mapping):
        return {}, 1
    good: dict[str, Kind] = {}
    for name, value in section.items():
        entry = converted(value, kind)
        if entry is not None and isinstance(name, str) and 0 < len(name) <= MAX_TABLE_NAME:
            good[name] = entry
    return good, len(section) - len(good)
