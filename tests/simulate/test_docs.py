"""docs/simulate.md holds the reference that the types give, docs/ladder.md the table of published figures."""

from __future__ import annotations

import typing
from pathlib import Path

import msgspec
import pytest

from traceinsight.base.hardware import GPUS, NETWORKS
from traceinsight.simulate import PRESETS
from traceinsight.simulate.ladder import ladder_details, ladder_throughputs, table
from traceinsight.simulate.reference import SECTIONS, description_of, spec_reference

DOCS = Path(__file__).parents[2] / "docs"
PAGE = DOCS / "simulate.md"


def test_every_field_has_a_description() -> None:
    for _, section in SECTIONS:
        hints = typing.get_type_hints(section, include_extras=True)
        for field in msgspec.structs.fields(section):
            sections = [other for _, other in SECTIONS]
            assert description_of(hints[field.name]) or hints[field.name] in sections, field.name


def test_the_reference_is_up_to_date() -> None:
    assert spec_reference() in PAGE.read_text(encoding="utf-8"), (
        "run python -m traceinsight.simulate.reference and put its output into docs/simulate.md"
    )


@pytest.mark.slow
def test_the_ladder_table_is_up_to_date() -> None:
    page = (DOCS / "ladder.md").read_text(encoding="utf-8")
    assert table([*ladder_throughputs(), *ladder_details()]) in page, "run python benchmarks/ladder.py"


def test_hardware_and_presets_are_named() -> None:
    page = PAGE.read_text(encoding="utf-8")
    for name in [*GPUS, *NETWORKS, *(one for one in PRESETS if not one.endswith("node"))]:
        assert f"`{name}`" in page, name
