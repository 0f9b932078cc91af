"""All fields with what they may be, as text: made from the configuration classes themselves."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any, get_type_hints

from training.config.checks import Allowed, ConfigError
from training.config.run import Config
from training.config.settings import wanted
from training.config.unused import NEEDS


def list_fields(config: Config, section: str = "", columns: int = 80) -> str:
    """Return every field of ``section``, or of all: its value in ``config``, what it may be, what it means.

    Raises ConfigError for an unknown section.
    """
    sections = {part.name: getattr(config, part.name) for part in dataclasses.fields(config)}
    sections = {name: value for name, value in sections.items() if dataclasses.is_dataclass(value)}
    if section and section not in sections:
        raise ConfigError(f"{section!r} is no section: it must be one of {', '.join(sections)}")
    shown = {section: sections[section]} if section else {"": config, **sections}
    return "\n\n".join("\n".join(_of_section(name, owner, columns)) for name, owner in shown.items())


def _of_section(section: str, owner: Any, columns: int) -> Iterator[str]:
    heading = inspect.cleandoc(type(owner).__doc__ or "").partition("\n\n")[0]
    yield from textwrap.wrap(f"{section or 'top level'}: {heading}", columns)
    hints, meanings = get_type_hints(type(owner)), meanings_of(type(owner))
    for part in dataclasses.fields(owner):
        value = getattr(owner, part.name)
        if dataclasses.is_dataclass(value):
            continue
        path = f"{section}.{part.name}" if section else part.name
        allowed: Allowed | None = part.metadata.get("allowed")
        kind = wanted(hints[part.name])
        may_be = allowed.text if allowed is not None else ""
        if hints[part.name] is not str or not may_be:
            may_be = f"{kind}, {may_be}" if may_be else kind
        needs = f" Needs {NEEDS[path][0]}." if path in NEEDS else ""
        yield f"  {path} = {as_text(value)}"
        yield from _indented(may_be, columns)
        yield from _indented(meanings.get(part.name, "") + needs, columns)


def _indented(text: str, columns: int) -> list[str]:
    return textwrap.wrap(text, columns, initial_indent=" " * 6, subsequent_indent=" " * 6)


def as_text(value: object) -> str:
    """Return ``value`` as ``--set`` takes it."""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def meanings_of(kind: type) -> dict[str, str]:
    """Return field -> the text under it in the class's source, which is where readers look too."""
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    found = {}
    for statement, behind in zip(tree.body, tree.body[1:], strict=False):
        if (
            isinstance(statement, ast.AnnAssign)
            and isinstance(statement.target, ast.Name)
            and isinstance(behind, ast.Expr)
            and isinstance(behind.value, ast.Constant)
        ):
            found[statement.target.id] = " ".join(str(behind.value.value).split())
    return found
