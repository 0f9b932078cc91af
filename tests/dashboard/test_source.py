"""Which paths may be opened, and when a reading is the same."""

from pathlib import Path

import pytest

from tests.report.diagnoses import late_rank
from traceinsight.base.errors import UsageError
from traceinsight.report import FORMATS, ReportOptions

from dashboard.source import Root, fingerprint, open_root  # isort: skip
from dashboard.store import Recent, read_report  # isort: skip


@pytest.fixture
def root(tmp_path: Path) -> Root:
    for name in (
        "root/a/rank0.json",
        "root/b/c/rank0.json.gz",
        "root/empty/readme.txt",
        "outside/rank0.json",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("[]")
    return Root(tmp_path / "root")


def test_folders_with_traces_are_offered(root: Root) -> None:
    assert root.choices() == ["", "a", "b/c"]
    assert Root(root.path / "a" / "rank0.json").choices() == [""]


@pytest.mark.parametrize("name", ["", "a", "b/../a", "a/rank0.json"])
def test_what_lies_inside_is_opened(root: Root, name: str) -> None:
    assert root.resolve(name) == (root.path / name).resolve()


@pytest.mark.parametrize("name", ["..", "../outside", "a/../../outside", "/etc", "/etc/passwd", "~"])
def test_what_lies_outside_is_refused(root: Root, name: str) -> None:
    with pytest.raises(UsageError):
        root.resolve(name)


def test_a_link_that_leads_outside_is_refused(root: Root) -> None:
    (root.path / "link").symlink_to(root.path.parent / "outside")
    with pytest.raises(UsageError, match="outside the folder"):
        root.resolve("link")


def test_a_sibling_whose_name_begins_alike_is_outside(root: Root) -> None:
    (root.path.parent / "root2").mkdir()
    with pytest.raises(UsageError, match="outside the folder"):
        root.resolve("../root2")


def test_a_nul_character_is_refused(root: Root) -> None:
    with pytest.raises(UsageError):
        root.resolve("a\0b")


@pytest.mark.parametrize("arguments", [[], ["one", "two"], ["not/there"]])
def test_a_wrong_call_is_explained(arguments: list[str]) -> None:
    with pytest.raises(UsageError):
        open_root(arguments)


def test_a_changed_file_is_read_again(root: Root) -> None:
    before = fingerprint(root.path)
    assert fingerprint(root.path) == before
    (root.path / "a" / "rank0.json").write_text("{}")  # as long as before
    assert fingerprint(root.path) != before


def test_a_report_is_known_by_its_content(tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text(FORMATS["json"].render(late_rank(), ReportOptions()))
    assert read_report(path) == late_rank()
    for other in ('{"traceEvents": []}', '{"schema_version": 1}', '{"schema_version"', ""):
        path.write_text(other)
        assert read_report(path) is None


def test_the_last_results_are_kept_and_made_once() -> None:
    made: list[str] = []
    recent: Recent[str, str] = Recent(2)
    for key in ("a", "b", "a", "c", "a", "b"):  # c drops b, which was used longest ago
        recent.get(key, lambda key=key: made.append(key) or key)  # type: ignore[func-returns-value, misc]
    assert made == ["a", "b", "c", "b"]


def test_a_failure_is_not_kept() -> None:
    recent: Recent[str, str] = Recent(2)
    with pytest.raises(ZeroDivisionError):
        recent.get("a", lambda: str(1 / 0))
    assert recent.get("a", lambda: "fine") == "fine"
