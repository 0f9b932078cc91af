"""Every rule is registered, says all a reader needs, and its page under docs/rules is current."""

import importlib
import importlib.util
import pkgutil
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from traceinsight.advice import rules
from traceinsight.advice.registry import RULES
from traceinsight.advice.rule import Rule

GENERATOR = Path(__file__).parents[2] / "docs" / "generate_rules_md.py"
SECTIONS = [
    "Detects",
    "Why it costs",
    "Evidence",
    "Remedy",
    "How the gain is predicted",
    "When this is wrong",
]


def rule_modules() -> list[ModuleType]:
    found = pkgutil.walk_packages(rules.__path__, prefix=f"{rules.__name__}.")
    return [importlib.import_module(one.name) for one in found if not one.ispkg]


MODULES = rule_modules()


@pytest.fixture(scope="module")
def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_rules_md", GENERATOR)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # its dataclass looks itself up
    spec.loader.exec_module(module)
    return module


def test_no_rule_module_is_an_orphan() -> None:
    assert {module.RULE.id for module in MODULES} == {rule.id for rule in RULES}
    assert len(RULES) == len(MODULES)


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_a_rule_is_named_after_its_file_and_says_everything(module: ModuleType) -> None:
    assert module.RULE.id == module.__name__.rpartition(".")[2].replace("_", "-")
    lines = (module.__doc__ or "").splitlines()
    headings = [line for line in lines[1:] if line and not line.startswith(" ")]
    assert headings == SECTIONS


def test_a_section_is_never_empty(generator: ModuleType) -> None:
    for rule in RULES:
        for heading, text in generator.sections(rule).items():
            assert len(text.split()) >= 5, f"{rule.id}: {heading}"


def test_every_threshold_of_a_rule_has_a_reason(generator: ModuleType) -> None:
    bare = [
        f"{module.__name__}: {threshold.name}"
        for module in MODULES
        for threshold in generator.constants(module.__name__)
        if not threshold.reason
    ]
    assert bare == []


def test_the_pages_are_current(generator: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert generator.main(["--check"]) == 0, capsys.readouterr().err


def test_a_stale_or_orphaned_page_is_noticed(generator: ModuleType, tmp_path: Path) -> None:
    assert generator.main([], folder=tmp_path) == 0
    assert generator.main(["--check"], folder=tmp_path) == 0
    page = tmp_path / "straggler.md"
    page.write_text(page.read_text(encoding="utf-8") + "more\n", encoding="utf-8")
    assert generator.main(["--check"], folder=tmp_path) == 1
    generator.main([], folder=tmp_path)
    (tmp_path / "gone-rule.md").write_text("old\n", encoding="utf-8")
    assert generator.main(["--check"], folder=tmp_path) == 1
    assert generator.main([], folder=tmp_path) == 0
    assert not (tmp_path / "gone-rule.md").exists()


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_a_page_gives_every_threshold_with_its_value(generator: ModuleType, rule: Rule) -> None:
    page = generator.page(rule)
    for threshold in generator.thresholds(rule):
        assert re.search(rf"`{threshold.name}` \| `{re.escape(threshold.value)}` \|", page)
