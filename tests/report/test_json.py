"""The JSON document: the contract, its schema, and back."""

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from tests.report.diagnoses import CASES, late_rank
from traceinsight.diagnosis import SCHEMA_VERSION
from traceinsight.report import FORMATS, ReportOptions
from traceinsight.report.json_document import read

SCHEMA = Path(__file__).parents[2] / "docs" / "diagnosis.schema.json"


def render(case: str) -> str:
    return FORMATS["json"].render(CASES[case](), ReportOptions())


@pytest.mark.parametrize("case", CASES)
def test_reading_back_gives_the_same_diagnosis(case: str) -> None:
    assert read(render(case)) == CASES[case]()


@pytest.mark.parametrize("case", CASES)
def test_the_published_schema_accepts_it(case: str) -> None:
    schema: dict[str, Any] = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.Draft202012Validator(schema).validate(json.loads(render(case)))


def test_the_published_schema_refuses_what_is_none_of_ours() -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    document = json.loads(render("late_rank"))
    document["partition"][0]["compute_ns"] = "fast"
    with pytest.raises(jsonschema.ValidationError, match="fast"):
        jsonschema.Draft202012Validator(schema).validate(document)
    with pytest.raises(msgspec.ValidationError, match="compute_ns"):
        read(json.dumps(document))


def test_the_version_comes_first_and_the_order_is_stable() -> None:
    text = render("late_rank")
    keys = list(json.loads(text))
    assert keys[0] == "schema_version"
    assert json.loads(text)["schema_version"] == SCHEMA_VERSION
    assert keys[1:] == [name for name in late_rank().__struct_fields__ if name != "schema_version"]
    assert text == render("late_rank")


def test_missing_stays_null_and_rank_keys_are_text() -> None:
    document = json.loads(render("single_rank"))
    assert document["collectives"][0]["transfer_ns"] is None
    assert document["clocks"][0]["residual_ns"] is None
    assert json.loads(render("late_rank"))["collectives"][0]["wait_ns"]["5"] == 0


def test_it_is_safe_on_a_terminal() -> None:
    text = render("hostile")
    assert text.isascii()
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f]", text)


def test_a_number_that_json_does_not_know_is_an_error() -> None:
    broken = msgspec.structs.replace(
        late_rank(),
        communication=[msgspec.structs.replace(late_rank().communication[0], bus_gbps=float("nan"))],
    )
    with pytest.raises(ValueError, match="not JSON compliant"):
        FORMATS["json"].render(broken, ReportOptions())
