"""docs/json.md and the published schema are generated; stale ones fail here."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

GENERATOR = Path(__file__).parents[2] / "docs" / "generate_json_md.py"


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_json_md", GENERATOR)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_and_the_schema_are_current(
    generator: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert generator.main(["--check"]) == 0, capsys.readouterr().err


def test_every_field_has_a_meaning(generator: ModuleType) -> None:
    silent = [
        f"{struct.__name__}.{field}"
        for struct in generator.structs()
        for field, meaning in generator.meanings(struct).items()
        if not meaning
    ]
    assert silent == []


def test_no_meaning_is_kept_for_a_field_that_is_gone(generator: ModuleType) -> None:
    fields = {struct.__name__: set(struct.__struct_fields__) for struct in generator.structs()}
    assert set(generator.COMMON) <= set().union(*fields.values())
    for struct, own in generator.IN_STRUCT.items():
        assert set(own) <= fields[struct], struct
