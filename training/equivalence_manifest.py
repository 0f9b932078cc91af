"""The part of a run's ``run.json`` that its curve is made of, checked field by field."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, ValidationError, convert

MOST_BYTES = 256 << 20
"""A manifest with 10,000 steps has about 1 MB; what is larger than this is another file."""

Count = Annotated[int, Meta(ge=1, le=1 << 53)]
Index = Annotated[int, Meta(ge=0, le=1 << 53)]
Entropy = Annotated[float, Meta(gt=0, le=1e12)]
"""Mean log loss over an entropy: positive. The upper bound is there to refuse infinity."""

Version = Annotated[int, Meta(ge=1, le=1)]
"""Of what ``traceinsight.capture`` writes: the only one there is."""


class CurveError(ValueError):
    """A curve that cannot be read or compared; the text names the file and what is wrong."""


class Window(Struct):
    """Measurements of the ``steps`` from ``first`` on, over all ranks."""

    examples: Count
    normalized_entropy: Entropy | None
    first: Index | None = None
    steps: Count | None = None


class Step(Struct):
    """Measurements of one step."""

    step: Index
    normalized_entropy: Entropy | None


class Data(Struct):
    """Of the configuration: what decides which clicks a run saw."""

    seed: int | None = None


class Loop(Struct):
    """Of the configuration: how long the run was to be."""

    steps: Count | None = None


class Config(Struct):
    """Of the configuration: what the comparison asks for. Another job may have none of it."""

    data: Data | None = None
    loop: Loop | None = None


class Head(Struct):
    """What every manifest has, or may have."""

    schema_version: Version = 1
    config: Config | None = None
    windows: list[Window] | None = None


class Stepwise(Struct):
    """What a manifest without windows must have."""

    batch_per_rank: Count
    world_size: Count
    steps: list[Step]


def read_fields(path: Path) -> tuple[Config, list[Window] | Stepwise]:
    """Return the configuration and the windows, or the steps where there are no windows.

    Raises CurveError naming file and field.
    """
    fields = _decoded(path)
    try:
        head = convert(fields, Head)
        return head.config or Config(), head.windows or convert(fields, Stepwise)
    except ValidationError as error:
        where = str(error).replace("`$.", "`").replace("`$`", "the top")
        raise CurveError(f"{path} has no normalized-entropy curve: {where}") from None


def _decoded(path: Path) -> Any:
    try:
        if not path.is_file():
            raise OSError("it is no plain file")
        if path.stat().st_size > MOST_BYTES:
            raise OSError(f"it is larger than {MOST_BYTES >> 20} MiB, which no run.json is")
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise CurveError(f"{path} has no normalized-entropy curve: not readable as JSON: {error}") from None
