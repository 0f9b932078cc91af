"""From a TOML file or a preset's name to a checked :class:`Spec`."""

from __future__ import annotations

import re
import tomllib
import typing
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from traceinsight.base.errors import UsageError
from traceinsight.base.hardware import GPUS, NETWORKS
from traceinsight.simulate.limits import size_problems
from traceinsight.simulate.presets import PRESETS, preset_text
from traceinsight.simulate.sharding import all_tables, partition_count
from traceinsight.simulate.spec import Spec

_AT = re.compile(r"^(?P<what>.*?)(?: - at `\$(?P<path>[^`]*)`)?$", re.DOTALL)
_UNKNOWN = re.compile(r"unknown field `(?P<field>[^`]*)`")
_MAX_EXTENDS = 8
_KNOWN_PRESETS = ", ".join(name for name in PRESETS if not name.startswith("ladder_"))


def load_spec(source: str | Path, overrides: Mapping[str, object] | None = None) -> Spec:
    """Read a specification.

    Args:
        source: Path of a TOML file, or the name of one of :data:`PRESETS`. A file may say
            ``extends = "<preset or path>"``; its tables are laid over that one's.
        overrides: Dotted name -> value, laid over everything, e.g. ``{"cluster.nodes": 4}``.

    Raises:
        UsageError: There is no such file or preset, or a field is unknown or out of range.

    """
    where = str(source)
    fields = _resolve(where, None, _MAX_EXTENDS)
    for name, value in (overrides or {}).items():
        *parents, leaf = name.split(".")
        patch: dict[str, Any] = {leaf: value}
        for parent in reversed(parents):
            patch = {parent: patch}
        fields = _merge(fields, patch)
    return decode_spec(fields, where)


def decode_spec(fields: Mapping[str, object], where: str = "specification") -> Spec:
    """Check already parsed TOML; ``where`` names it in errors. Raises UsageError."""
    try:
        spec = msgspec.convert(fields, Spec)
    except msgspec.ValidationError as error:
        raise _usage_error(str(error), where) from None
    problem = next(_problems(spec), None)
    if problem is not None:
        raise UsageError(problem[0], where=where, what_to_do=problem[1])
    return spec


def _resolve(source: str, beside: Path | None, left: int) -> dict[str, Any]:
    """The fields of a file laid over those of what it extends; paths are relative to ``beside``."""
    if left == 0:
        raise UsageError("extends lead in a circle or too deep.", where=source)
    preset = PRESETS.get(source)
    if preset is not None:
        text, folder = preset_text(preset.file), None
    else:
        path = Path(source) if beside is None else beside / source
        text, folder = _file_text(path), path.parent
    try:
        fields: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"no valid TOML: {error}.", where=source) from None
    base = fields.pop("extends", None)
    if base is not None:
        fields = _merge(_resolve(str(base), folder, left - 1), fields)
    return _merge(fields, preset.overrides) if preset is not None else fields


def _file_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        near = get_close_matches(str(path), PRESETS, n=1)
        known = f"Give a TOML file or a preset: {_KNOWN_PRESETS}, or a ladder_... of docs/simulate.md."
        what_to_do = f"Did you mean {near[0]}?" if near else known
        raise UsageError(
            f"no readable specification ({type(error).__name__}).", where=str(path), what_to_do=what_to_do
        ) from None


def _merge(base: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Tables are merged key by key; everything else, arrays too, is replaced."""
    merged = dict(base)
    for key, value in patch.items():
        old = merged.get(key)
        merged[key] = _merge(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return merged


def _usage_error(message: str, where: str) -> UsageError:
    found = _AT.match(message)
    what, path = (found["what"], found["path"] or "") if found else (message, "")
    unknown = _UNKNOWN.search(what)
    field = ".".join(part for part in (path.lstrip("."), unknown["field"] if unknown else "") if part)
    found_type = _type_at(path)
    owner = inner_type(found_type)
    if unknown and isinstance(owner, type) and issubclass(owner, msgspec.Struct):
        return UsageError(
            f"unknown field {field}.",
            where=where,
            what_to_do=f"Known here: {', '.join(owner.__struct_fields__)}.",
        )
    allowed = allowed_values(found_type)
    what_to_do = f"Allowed: {allowed}." if allowed else None
    return UsageError(f"{field or 'specification'}: {what}.", where=where, what_to_do=what_to_do)


def _type_at(path: str) -> Any:
    """The annotated type of the field a msgspec path such as ``.stragglers[0].rank`` leads to."""
    current: Any = Spec
    for name in re.findall(r"\w+|\[[^\]]*\]", path):
        owner = inner_type(current)
        if name.startswith("["):
            arguments = [one for one in typing.get_args(owner) if one is not Ellipsis]
            current = arguments[-1]  # of a tuple its items, of a dict its values
        elif isinstance(owner, type) and issubclass(owner, msgspec.Struct):
            current = typing.get_type_hints(owner, include_extras=True).get(name)
    return current


def inner_type(annotated: Any) -> Any:
    """The type without its description and without ``| None``."""
    while typing.get_origin(annotated) is typing.Annotated or type(None) in typing.get_args(annotated):
        annotated = typing.get_args(annotated)[0]
    return annotated


def allowed_values(field: Any) -> str:
    """The range or the choices of a field, for a person; empty if anything of the type goes."""
    inner = inner_type(field)
    if typing.get_origin(inner) is typing.Literal:
        return ", ".join(map(str, typing.get_args(inner)))
    while type(None) in typing.get_args(field):
        field = typing.get_args(field)[0]
    words = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<"}
    bounds = [
        f"{sign} {bound:,}"
        for meta in getattr(field, "__metadata__", ())
        for key, sign in words.items()
        if (bound := getattr(meta, key, None)) is not None
    ]
    return " and ".join(bounds)


def _problems(spec: Spec) -> Iterator[tuple[str, str]]:
    """What no single field shows: (what is wrong, what is allowed)."""
    cluster, world = spec.cluster, spec.world_size
    if cluster.gpu not in GPUS:
        yield f"cluster.gpu: no {cluster.gpu!r} in the hardware table.", f"Allowed: {', '.join(GPUS)}."
    if cluster.network not in NETWORKS:
        yield f"cluster.network: no {cluster.network!r}.", f"Allowed: {', '.join(NETWORKS)}."
    if world % spec.group_size:
        yield f"two_d.group_size: {spec.group_size} does not divide {world} ranks.", "Take a divisor."
    for name, table in spec.tables.items():
        if table.dim % spec.narrowing:
            yield (
                f"narrowing: {spec.narrowing} does not divide dim {table.dim} of {name}.",
                "Take a divisor.",
            )
    ranks = {
        "stragglers.rank": [one.rank for one in spec.stragglers],
        "capture.missing_ranks": spec.capture.missing_ranks,
        "capture.dropped_kernel_ranks": spec.capture.dropped_kernel_ranks,
    }
    for field, given in ranks.items():
        wrong = [rank for rank in given if not 0 <= rank < world]
        if wrong:
            yield f"{field}: there is no rank {wrong[0]}.", f"Allowed: 0 to {world - 1}."
    if world == len(set(spec.capture.missing_ranks)):
        yield "capture.missing_ranks: names every rank; there would be no trace.", "Leave one rank or more."
    yield from size_problems(spec)
    yield from _placement_problems(spec)


def _placement_problems(spec: Spec) -> Iterator[tuple[str, str]]:
    counts = {name: partition_count(table, spec.world_size) for name, table in all_tables(spec)}
    for name, ranks in spec.placement.explicit.items():
        if name not in counts:
            yield (
                f"placement.explicit: there is no table {name}.",
                f"Allowed: {', '.join(sorted(counts)[:20])}.",
            )
        elif len(ranks) != counts[name] or not all(0 <= rank < spec.group_size for rank in ranks):
            yield (
                f"placement.explicit.{name}: expected {counts[name]} ranks inside the sharding group.",
                f"Allowed: one of 0 to {spec.group_size - 1} per partition.",
            )
