"""docs/metrics.md explains every number, and its constants have the values of the code."""

import importlib
import pkgutil
import re
import typing
from pathlib import Path

import msgspec
import pytest

from traceinsight.diagnosis import Diagnosis
from traceinsight.diagnosis.comparison import Comparison
from traceinsight.diagnosis.scaling import Scaling

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "metrics.md").read_text(encoding="utf-8")
NO_MEASUREMENT = {"schema_version", "generator", "name", "version"}
"""What identifies a document; docs/json.md describes it."""


def structs() -> list[type[msgspec.Struct]]:
    found: list[type[msgspec.Struct]] = [Diagnosis, Comparison, Scaling]
    for struct in found:
        for hint in typing.get_type_hints(struct).values():
            found += [one for one in parts(hint) if one not in found]
    return found


def parts(hint: object) -> list[type[msgspec.Struct]]:
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return [hint]
    return [part for argument in typing.get_args(hint) for part in parts(argument)]


def public_constants() -> dict[str, set[float]]:
    """Every upper-case number of the package by name, with all values it has in some module."""
    found: dict[str, set[float]] = {}
    for part in ("base", "trace", "diagnosis", "analyses", "replay", "advice", "engine"):
        package = importlib.import_module(f"traceinsight.{part}")
        for module in pkgutil.walk_packages(package.__path__, prefix=f"{package.__name__}."):
            for name, value in vars(importlib.import_module(module.name)).items():
                if name.isupper() and isinstance(value, int | float):
                    found.setdefault(name, set()).add(float(value))
    return found


@pytest.mark.parametrize("struct", structs(), ids=lambda struct: struct.__name__)
def test_every_field_is_explained(struct: type[msgspec.Struct]) -> None:
    mentioned = set(re.findall(r"`(?:\w+\.)*(\w+)(?:\[\])?`", PAGE))
    assert set(struct.__struct_fields__) - mentioned - NO_MEASUREMENT == set()


def test_every_cause_of_idle_time_is_explained() -> None:
    causes = importlib.import_module("traceinsight.diagnosis").CAUSES
    assert [cause for cause in causes if f"| `{cause}` |" not in PAGE] == []


def test_constants_on_the_page_are_those_of_the_code() -> None:
    stated = dict(re.findall(r"`([A-Z][A-Z0-9_]+)` = ([0-9](?:[0-9._]*[0-9])?)", PAGE))
    actual = public_constants()
    assert len(stated) >= 15
    assert {name: {float(value)} for name, value in stated.items()} == {
        name: actual.get(name) for name in stated
    }


def test_links_inside_the_docs_lead_somewhere() -> None:
    anchors = {
        re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", PAGE, re.MULTILINE)
    }
    links = re.findall(r"\]\(([^)]+)\)", PAGE)
    assert [link for link in links if link.startswith("#") and link[1:] not in anchors] == []
    assert [link for link in links if link[0] != "#" and not (DOCS / link).is_file()] == []
