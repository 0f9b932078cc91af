"""Changing a configuration by text: ``--set section.field=value`` and TOML files."""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
import types
import typing
from pathlib import Path
from typing import Any

from training.config.checks import ConfigError
from training.config.run import Config
from training.config.unused import refuse_unused

_WORDS: dict[object, str] = {
    bool: "true or false",
    int: "a whole number in digits",
    float: "a number",
    str: "a text",
}
_SWITCH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}


def with_setting(config: Config, assignment: str) -> Config:
    """Return ``config`` with one ``section.field=value`` (or ``field=value``) replaced.

    Raises ConfigError for an unknown field (what may have been meant is said), for a value of the wrong type
    or range, and for one that would do nothing.
    """
    return with_settings(config, [assignment])


def with_settings(config: Config, assignments: typing.Iterable[str]) -> Config:
    """Return ``config`` with every ``section.field=value`` replaced, judged together.

    Together because fields depend on each other: world_size=2 alone may be wrong for a fault on rank 3 that
    the next assignment moves.
    """
    changes: dict[str, dict[str, object]] = {}
    for assignment in assignments:
        path, separator, text = assignment.partition("=")
        if not separator:
            raise ConfigError(
                f"--set {assignment!r} is not understood: write section.field=value, e.g. model.dim=32"
            )
        section, name, kind = _field(config, path.strip())
        changes.setdefault(section, {})[name] = _parse(path.strip(), text.strip(), kind)
    return _replaced(config, changes)


def from_toml(config: Config, path: str | Path) -> Config:
    """Return ``config`` with the fields of a TOML file replaced: top-level keys and a table per section.

    Raises ConfigError for a file that cannot be read, an unknown field and a wrong value.
    """
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path} is no readable TOML file: {error}") from None
    changes: dict[str, dict[str, object]] = {}
    for key, value in document.items():
        fields = value if isinstance(value, dict) else {"": value}
        for name, given in fields.items():
            dotted = f"{key}.{name}" if name else key
            section, field, kind = _field(config, dotted)
            changes.setdefault(section, {})[field] = _converted(dotted, given, kind)
    return _replaced(config, changes)


def settable_fields(config: Config) -> list[str]:
    """Return every ``section.field`` that can be set, in the order of declaration."""
    names = _settable(config)
    for part in dataclasses.fields(config):
        section = getattr(config, part.name)
        if dataclasses.is_dataclass(section):
            names += [f"{part.name}.{name}" for name in _settable(section)]
    return names


def as_dict(config: Config) -> dict[str, Any]:
    """Return the configuration as JSON types, for ``run.json``."""
    return dataclasses.asdict(config)


def _replaced(config: Config, changes: dict[str, dict[str, object]]) -> Config:
    top = dict(changes.get("", {}))
    for section, fields in changes.items():
        if section:
            top[section] = dataclasses.replace(getattr(config, section), **fields)
    changed = dataclasses.replace(config, **typing.cast(dict[str, Any], top))
    given = [f"{section}.{name}".strip(".") for section, fields in changes.items() for name in fields]
    refuse_unused(changed, given)
    return changed


def _field(config: Config, path: str) -> tuple[str, str, object]:
    """Return (section or "", field, its type); raises ConfigError for an unknown one."""
    section, _, name = path.rpartition(".")
    owner = config if not section else getattr(config, section, None)
    if not dataclasses.is_dataclass(owner) or name not in _settable(owner):
        raise ConfigError(f"{path} is not a field: {_meant(path, settable_fields(config))}")
    return section, name, typing.get_type_hints(type(owner))[name]


def _meant(path: str, known: list[str]) -> str:
    name = path.rpartition(".")[2]
    alike = [field for field in known if field.rpartition(".")[2] == name]
    alike += difflib.get_close_matches(path, known, n=3)
    alike += [field for field in known if field.startswith(f"{path}.")][:3]
    guess = f"did you mean {' or '.join(dict.fromkeys(alike))}? " if alike else ""
    return f"{guess}python -m training --fields lists all"


def _settable(owner: object) -> list[str]:
    parts = dataclasses.fields(owner)  # type: ignore[arg-type]
    return [part.name for part in parts if not dataclasses.is_dataclass(getattr(owner, part.name))]


def _parse(name: str, text: str, kind: object) -> object:
    try:
        if isinstance(kind, types.GenericAlias):
            return tuple(int(part) for part in text.split(","))
        if kind is bool:
            return _SWITCH[text.lower()]
        return typing.cast(type, kind)(text)
    except (ValueError, KeyError):
        raise ConfigError(f"{name} = {text!r} is not allowed: it must be {wanted(kind)}") from None


def _converted(name: str, value: object, kind: object) -> object:
    if isinstance(kind, types.GenericAlias):
        if isinstance(value, list) and all(type(part) is int for part in value):
            return tuple(value)
    elif type(value) is kind or (kind is float and type(value) is int):
        return typing.cast(type, kind)(value)
    raise ConfigError(f"{name} = {value!r} is not allowed: it must be {wanted(kind)}")


def wanted(kind: object) -> str:
    """Return what a value of a field of type ``kind`` looks like."""
    if isinstance(kind, types.GenericAlias):
        return "whole numbers joined by commas"
    return _WORDS[kind]
