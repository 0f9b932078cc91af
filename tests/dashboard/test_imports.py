"""The dashboard stands on the public side of traceinsight; charts know no Streamlit; pages read no file."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

FOLDER = REPOSITORY / "dashboard"
PUBLIC = {
    "traceinsight",
    "traceinsight.api",
    "traceinsight.diagnosis",
    "traceinsight.diagnosis.comparison",
    "traceinsight.diagnosis.placement",
    "traceinsight.diagnosis.prediction",
    "traceinsight.diagnosis.scaling",
    "traceinsight.diagnosis.shards",
    "traceinsight.export",
    "traceinsight.report",
    "traceinsight.report.build",  # the document that every report draws
    "traceinsight.report.comparison",
    "traceinsight.report.document",
    "traceinsight.report.scaling",
    "traceinsight.report.tiles",  # the numbers above every report
    "traceinsight.report.text",  # how untrusted text is cleaned
    "traceinsight.base.errors",
    "traceinsight.base.units",  # how numbers are written
}
MODULES = sorted(FOLDER.rglob("*.py"))


def imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


def test_there_is_something_to_check() -> None:
    assert len(MODULES) > 10


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(FOLDER).as_posix())
def test_only_the_public_side_is_imported(path: Path) -> None:
    ours = {name for name in imports(path) if name.split(".")[0] == "traceinsight"}
    assert ours <= PUBLIC
    # In a wheel the folder has another name, so a neighbour is never imported by it.
    assert not [name for name in imports(path) if name.split(".")[0] == "dashboard"]


@pytest.mark.parametrize("path", sorted((FOLDER / "charts").glob("*.py")), ids=lambda path: path.name)
def test_charts_are_pure(path: Path) -> None:
    assert not [name for name in imports(path) if name.split(".")[0] in {"streamlit", "pathlib", "os"}]
