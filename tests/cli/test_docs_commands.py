"""What the documents tell a reader to type works, and what they link to is there."""

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import REPOSITORY

PAGES = [REPOSITORY / "README.md", REPOSITORY / "CHANGELOG.md", *sorted((REPOSITORY / "docs").glob("*.md"))]
SAMPLES = REPOSITORY / "sample_traces"


def marked_commands() -> Iterator[tuple[str, str]]:
    """(page, commands) of every sh block under ``<!-- run -->``."""
    for page in PAGES:
        for block in re.findall(
            r"^<!-- run -->\n```sh\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
        ):
            yield page.name, block


def test_readme_and_reference_have_commands_to_run() -> None:
    assert {page for page, _ in marked_commands()} >= {"README.md", "cli.md"}


@pytest.mark.parametrize(("page", "commands"), list(marked_commands()))
def test_the_commands_work(page: str, commands: str, tmp_path: Path) -> None:
    # The shim stands for the console script, which exists only where the package is installed.
    shim = tmp_path / "bin" / "traceinsight"
    shim.parent.mkdir()
    shim.write_text(f"#!{sys.executable}\nimport sys\nfrom traceinsight.cli import main\nsys.exit(main())\n")
    shim.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    (work / "sample_traces").symlink_to(SAMPLES)
    done = subprocess.run(
        ["sh", "-e", "-c", commands],
        cwd=work,
        env=os.environ | {
            "PATH": f"{shim.parent}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(REPOSITORY),
        },
        capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr


def test_the_sample_output_in_the_readme_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    path = REPOSITORY / "docs" / "update_readme.py"
    spec = importlib.util.spec_from_file_location("update_readme", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert module.main(["--check"]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    dead = [
        target
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[\w-]*)?\)", text)
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert dead == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_nobody_is_told_to_install_somebody_elses_package(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"(?:pip|pipx|uv)[^\n]* install[^\n]* traceinsight(?!-recsys|\.|/)", text)


def test_readme_gives_the_two_commands_first() -> None:
    text = (REPOSITORY / "README.md").read_text(encoding="utf-8")
    assert text.index("make demo") < text.index("make test") < text.index("pip install")
    makefile = (REPOSITORY / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^demo:", makefile, re.MULTILINE)
    assert re.search(r"^test:", makefile, re.MULTILINE)
