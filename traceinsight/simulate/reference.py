"""The specification's reference as Markdown, from the types themselves; ``docs/simulate.md`` holds it."""

from __future__ import annotations

import sys
import typing
from collections.abc import Iterator
from typing import Any

import msgspec

from traceinsight.simulate.load import allowed_values, inner_type
from traceinsight.simulate.spec import (
    Capture,
    Cluster,
    Comms,
    Dense,
    Host,
    Input,
    Placement,
    Spec,
    Straggler,
    Table,
    TwoD,
)

SECTIONS: tuple[tuple[str, type[msgspec.Struct]], ...] = (
    ("Top level", Spec),
    ("`[cluster]`", Cluster),
    ("`[tables.<name>]`", Table),
    ("`[placement]`", Placement),
    ("`[dense]`", Dense),
    ("`[comms]`", Comms),
    ("`[two_d]`", TwoD),
    ("`[host]`", Host),
    ("`[input]`", Input),
    ("`[[stragglers]]`", Straggler),
    ("`[capture]`", Capture),
)


def spec_reference() -> str:
    """One table per section: field, default, allowed values, meaning."""
    return "\n".join(line for title, section in SECTIONS for line in _section(title, section))


def description_of(field: Any) -> str:
    """The description in a field's type; empty if there is none."""
    while type(None) in typing.get_args(field) and typing.get_origin(field) is not typing.Annotated:
        field = typing.get_args(field)[0]
    return next((meta.description for meta in getattr(field, "__metadata__", ()) if meta.description), "")


def _section(title: str, section: type[msgspec.Struct]) -> Iterator[str]:
    yield f"### {title}\n"
    yield "| field | default | allowed | meaning |"
    yield "|---|---|---|---|"
    hints = typing.get_type_hints(section, include_extras=True)
    for field in msgspec.structs.fields(section):
        annotated = hints[field.name]
        inner = inner_type(annotated)
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct) and not description_of(annotated):
            continue  # a section of its own
        words = allowed_values(annotated) or "any"
        yield f"| `{field.name}` | {_default(field)} | {words} | {description_of(annotated)} |"
    yield ""


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT:
        return "required"
    value = field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
    if value is None or value in ((), {}):
        return "none"
    return f"`{value}`".replace("True", "true").replace("False", "false")


if __name__ == "__main__":
    sys.stdout.write(spec_reference())
