"""What must not matter: when, in which order, and in which packing the same events are written."""

import gzip
import itertools
import json
import random
import re
import zipfile
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.builders import BASE_NS, MS, US, Job, JobBuilder, Late, file_name

RANKS = range(4)
NAMES_A_FILE = {"files", "file", "start"}  # file names, and the absolute start of another run


@pytest.fixture(scope="module")
def job() -> Job:
    """A job with something to say: a late rank, jitter, a clock ahead, idle time."""
    return JobBuilder(
        late=(Late(1, 2 * MS),), jitter_ns=50 * US, clock_ahead_ns={2: 300 * US}, sync_stall_ns=1 * MS
    ).build()


@pytest.fixture(scope="module")
def plain(job: Job, diagnose: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The answer for the job as it is written."""
    answer = numbers(diagnose(job.write(tmp_path_factory.mktemp("plain"))))
    assert answer["stragglers"]
    assert answer["findings"]
    return answer


def numbers(diagnosis: Any) -> Any:
    """The document without file names and absolute times."""
    return _without_files(msgspec.to_builtins(diagnosis, str_keys=True))


def _without_files(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: _without_files(v) for k, v in value.items() if k not in NAMES_A_FILE}
    if isinstance(value, list):
        return [_without_files(v) for v in value]
    return value


def restamp(text: str, change: Callable[[Decimal], str]) -> str:
    """Every ``ts`` replaced; digits are handled as text, so nothing is rounded."""
    return re.sub(r'"ts": (-?[0-9.e+]+)', lambda m: f'"ts": {change(Decimal(m[1]))}', text)


def shifted_base(text: str) -> str:
    return text.replace(str(BASE_NS), str(BASE_NS + 86_400_000 * MS + 7))


def shifted_by_odd_nanoseconds(text: str) -> str:
    return restamp(text, lambda ts: str(ts + Decimal("123456.789")))


def absolute_16_digits(text: str) -> str:
    moved = restamp(text, lambda ts: f"{ts + Decimal(BASE_NS) / 1000:f}")
    return moved.replace(f'"baseTimeNanoseconds": {BASE_NS}, ', "")


def stamps_as_strings(text: str) -> str:
    return restamp(text, lambda ts: f'"{ts:f}"')


def shuffled(text: str) -> str:
    document = json.loads(text)
    random.Random(text[:1000]).shuffle(document["traceEvents"])
    return json.dumps(document)


def reversed_events(text: str) -> str:
    document = json.loads(text)
    document["traceEvents"].reverse()
    return json.dumps(document)


def header_last(text: str) -> str:
    document = json.loads(text)
    return json.dumps({"traceEvents": document.pop("traceEvents"), **document})


def pretty(text: str) -> str:
    return json.dumps(json.loads(text), indent=2)


def minified(text: str) -> str:
    return json.dumps(json.loads(text), separators=(",", ":"))


REWRITES = [
    shifted_base,
    shifted_by_odd_nanoseconds,
    absolute_16_digits,
    stamps_as_strings,
    shuffled,
    reversed_events,
    header_last,
    pretty,
    minified,
]


@pytest.mark.parametrize("rewrite", REWRITES, ids=lambda f: f.__name__)
def test_rewriting_the_files_changes_no_number(
    job: Job, plain: Any, diagnose: Callable[..., Any], tmp_path: Path, rewrite: Callable[[str], str]
) -> None:
    for rank in RANKS:
        text = job.text(rank)
        changed = rewrite(text)
        assert changed != text
        (tmp_path / file_name(rank)).write_bytes(gzip.compress(changed.encode(), compresslevel=1))
    assert numbers(diagnose(tmp_path)) == plain


def members(data: bytes) -> bytes:
    """The same bytes as several gzip members, cut without regard to the events."""
    cuts = [0, 1, len(data) // 3, len(data) // 2, len(data)]
    return b"".join(gzip.compress(data[a:b]) for a, b in itertools.pairwise(cuts))


def test_splitting_gzip_members_changes_no_number(
    job: Job, plain: Any, diagnose: Callable[..., Any], tmp_path: Path
) -> None:
    for rank in RANKS:
        (tmp_path / file_name(rank)).write_bytes(members(job.text(rank).encode()))
    assert numbers(diagnose(tmp_path)) == plain


def test_uncompressed_files_give_the_same(
    job: Job, plain: Any, diagnose: Callable[..., Any], tmp_path: Path
) -> None:
    for rank in RANKS:
        (tmp_path / f"rank{rank}.pt.trace.json").write_text(job.text(rank))
    assert numbers(diagnose(tmp_path)) == plain


def test_one_zip_of_all_ranks_gives_the_same(
    job: Job, plain: Any, diagnose: Callable[..., Any], tmp_path: Path
) -> None:
    with zipfile.ZipFile(tmp_path / "traces.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for rank in RANKS:
            archive.writestr(f"rank{rank}.pt.trace.json", job.text(rank))
    assert numbers(diagnose(tmp_path / "traces.zip")) == plain


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)])
def test_the_order_of_the_arguments_changes_no_number(
    job: Job, plain: Any, diagnose: Callable[..., Any], tmp_path: Path, order: tuple[int, ...]
) -> None:
    folder = job.write(tmp_path)
    assert numbers(diagnose([folder / file_name(rank) for rank in order])) == plain


def test_file_names_of_other_ranks_change_no_number(
    job: Job, plain: Any, diagnose: Callable[..., Any], tmp_path: Path
) -> None:
    """The rank comes from the file's own header, so that a misnamed file misleads nobody."""
    for rank in RANKS:
        (tmp_path / f"worker{3 - rank}.json").write_text(job.text(rank))
    assert numbers(diagnose(tmp_path)) == plain


def test_reading_in_several_processes_changes_no_number(job: Job, plain: Any, tmp_path: Path) -> None:
    from traceinsight.api import analyze  # noqa: PLC0415  late, as in conftest

    assert numbers(analyze([str(job.write(tmp_path))], workers=2)) == plain


@pytest.mark.corpus
def test_permuting_the_files_of_a_public_run_changes_no_number(
    corpus: Path, diagnose: Callable[..., Any], diagnose_corpus: Callable[..., Any]
) -> None:
    files = sorted((corpus / "dlrm_v100_8rank").iterdir(), reverse=True)
    assert numbers(diagnose(files)) == numbers(diagnose_corpus("dlrm_v100_8rank"))
