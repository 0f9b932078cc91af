"""Fixtures that every test may use: where the public traces lie, and analyses done once per session."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.builders import Job

# No test may depend on how busy the machine is: examples have no deadline, and slow ones no complaint.
settings.register_profile("traceinsight", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("traceinsight")

TRIES_AGAIN = 2
"""How often a test of a real run's own times is tried again (see MEASURED in tests/training/running.py)."""

REPOSITORY = Path(__file__).resolve().parent.parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let measured tests be tried again."""
    for item in items:
        if item.get_closest_marker("measured"):
            item.add_marker(pytest.mark.flaky(reruns=TRIES_AGAIN))


def corpus_folder() -> Path:
    """Where the public traces should lie."""
    named = os.environ.get("TRACEINSIGHT_CORPUS")
    return Path(named) if named else REPOSITORY.parent / "shared" / "corpus"


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The public traces. Absent: skipped on a developer's machine, a failure in CI."""
    folder = corpus_folder()
    if folder.is_dir():
        return folder
    reason = f"no corpus at {folder}: set TRACEINSIGHT_CORPUS to the folder of public traces"
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture(scope="session")
def diagnose() -> Callable[..., Any]:
    """``analyze`` on one path or several, in this process (tests run in parallel by themselves)."""
    from traceinsight.api import analyze  # noqa: PLC0415  late, so that collecting needs no product

    def run(paths: Path | list[Path], **options: Any) -> Any:
        many = paths if isinstance(paths, list) else [paths]
        return analyze([str(p) for p in many], workers=1, **options)

    return run


@pytest.fixture(scope="session")
def diagnose_corpus(corpus: Path, diagnose: Callable[..., Any]) -> Callable[..., Any]:
    """Diagnosis of a file or folder of the corpus; each is analysed once per session."""
    known: dict[tuple[str, int | None], Any] = {}

    def run(relative: str, number: int | None = None) -> Any:
        key = (relative, number)
        if key not in known:
            known[key] = diagnose(corpus / relative, run=number)
        return known[key]

    return run


@pytest.fixture
def diagnose_job(tmp_path: Path, diagnose: Callable[..., Any]) -> Callable[[Job], Any]:
    """Diagnosis of a built job, through its files."""

    def run(job: Job) -> Any:
        return diagnose(job.write(tmp_path / "job"))

    return run
