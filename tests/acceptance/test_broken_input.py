"""Whatever the bytes: a result with notes, or one clear error; never a traceback."""

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.reading import assert_partition_adds_up, blamed, said
from tests.builders import MS, JobBuilder, Late, file_name

BROKEN = (
    "bare_NA_values.kineto131.json",
    "bare_list_no_meta.pt95460.json",
    "comms_id_gt_int64.hta324.json",
    "empty_file.json",
    "impossible_duration_same_stream.hyperloom1116.json",
    "invalid_utf8.pt136180.json",
    "truncated_gzip.torchrec.json.gz",
    "truncated_mid_event.torchrec.json",
    "ts0_dur0_kernels.kineto109.json",
    "unescaped_quotes_newline.pt113001.json",
)
COMMAND = "import sys; from traceinsight.cli import main; sys.exit(main())"


def run_cli(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", COMMAND, *arguments], capture_output=True, text=True, check=False, timeout=120
    )


@pytest.mark.corpus
def test_every_broken_file_of_the_corpus_is_listed_here(corpus: Path) -> None:
    assert sorted(p.name for p in (corpus / "broken").iterdir()) == sorted(BROKEN)


@pytest.mark.corpus
@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_file_gives_notes_or_one_clear_error(
    diagnose: Callable[..., Any], corpus: Path, name: str
) -> None:
    from traceinsight.base.errors import UnreadableInputError  # noqa: PLC0415  late, as in conftest

    try:
        diagnosis = diagnose(corpus / "broken" / name)
    except UnreadableInputError as error:
        assert name in str(error)
        assert error.exit_code == 3
    else:
        assert diagnosis.verdict.strip()
        assert diagnosis.data_quality
        assert_partition_adds_up(diagnosis)


@pytest.mark.corpus
@pytest.mark.parametrize("name", BROKEN)
def test_the_command_ends_with_0_or_3_and_without_traceback(corpus: Path, name: str) -> None:
    done = run_cli("analyze", str(corpus / "broken" / name))
    assert "Traceback" not in done.stdout + done.stderr
    assert done.returncode in (0, 3)
    if done.returncode == 3:
        assert name in done.stderr.replace("\n", "")
        assert not done.stdout
    else:
        assert done.stdout.strip()


@pytest.mark.corpus
def test_an_empty_file_is_unreadable(corpus: Path) -> None:
    assert run_cli("analyze", str(corpus / "broken" / "empty_file.json")).returncode == 3


@pytest.mark.corpus
@pytest.mark.parametrize("name", [n for n in BROKEN if "truncated" in n])
def test_what_stands_before_the_cut_is_analysed(
    diagnose: Callable[..., Any], corpus: Path, name: str
) -> None:
    diagnosis = diagnose(corpus / "broken" / name)
    assert diagnosis.run.world_size == 4
    assert any(q.severity in ("warning", "error") for q in diagnosis.data_quality)


@pytest.mark.corpus
def test_an_impossible_duration_is_not_believed(diagnose: Callable[..., Any], corpus: Path) -> None:
    # The kernel says 3.4 s; the next ones of its own stream end 1.1 ms after it began.
    name = "impossible_duration_same_stream.hyperloom1116.json"
    diagnosis = diagnose(corpus / "broken" / name)
    assert sum(p.window_ns for p in diagnosis.partition) <= 2 * MS
    assert sum(k.busy_ns for k in diagnosis.kernels) <= 2 * MS


@pytest.mark.corpus
def test_a_kernel_without_time_does_not_stretch_the_window(
    diagnose: Callable[..., Any], corpus: Path
) -> None:
    # Kernels at 1000 us and 1100 us, and one that claims to have been at 0.
    diagnosis = diagnose(corpus / "broken" / "ts0_dur0_kernels.kineto109.json")
    assert sum(p.window_ns for p in diagnosis.partition) < 1 * MS


def test_a_missing_path_is_one_clear_error(tmp_path: Path) -> None:
    done = run_cli("analyze", str(tmp_path / "nowhere"))
    assert done.returncode in (2, 3)
    assert "Traceback" not in done.stdout + done.stderr
    assert "nowhere" in done.stderr.replace("\n", "")


def test_a_folder_without_traces_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no trace here")
    done = run_cli("analyze", str(tmp_path))
    assert done.returncode == 3
    assert "Traceback" not in done.stdout + done.stderr


GARBAGE = {
    "no gzip behind the name": b"not gzip at all",
    "gzip cut in its header": gzip.compress(b"{}")[:6],
    "empty": b"",
    "JSON that is no trace": gzip.compress(b'{"hello": [1, 2, 3]}', mtime=0),
}


@pytest.mark.parametrize("content", GARBAGE.values(), ids=GARBAGE)
def test_one_broken_and_three_good_ranks_analyses_three_and_says_so(
    tmp_path: Path, diagnose: Callable[..., Any], content: bytes
) -> None:
    job = JobBuilder(late=(Late(1, 2 * MS),)).build()
    folder = job.write(tmp_path, ranks=[0, 1, 2])
    (folder / file_name(3)).write_bytes(content)
    diagnosis = diagnose(folder)
    assert diagnosis.run.ranks == [0, 1, 2]
    assert diagnosis.run.missing_ranks == [3]
    assert file_name(3) in said(diagnosis)
    assert {row.rank for row in diagnosis.partition} == {0, 1, 2}
    assert_partition_adds_up(diagnosis)


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9])
def test_a_file_cut_short_does_not_spoil_the_others(
    tmp_path: Path, diagnose: Callable[..., Any], kept: float
) -> None:
    job = JobBuilder(late=(Late(1, 2 * MS),)).build()
    folder = job.write(tmp_path)
    whole = (folder / file_name(3)).read_bytes()
    (folder / file_name(3)).write_bytes(whole[: int(kept * len(whole))])
    diagnosis = diagnose(folder)
    assert {0, 1, 2} <= set(diagnosis.run.ranks)
    assert file_name(3) in said(diagnosis)
    assert blamed(diagnosis) in ([], [[1]])  # a cut may leave too little to judge, never another culprit
    windows = {row.step: row.window_ns for row in diagnosis.partition if row.rank == 0}
    assert windows
    for step in set(windows) & set(job.closed_steps):
        start, end = job.window(0, step)
        assert windows[step] == end - start


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.9])
def test_a_cut_file_of_a_cpu_rank_is_no_idle_rank(
    tmp_path: Path, diagnose: Callable[..., Any], kept: float
) -> None:
    # No launch tells what the file lacks: its rank would idle, and a replay would take that for slack.
    folder = JobBuilder(gpu=False, late=(Late(1, 2 * MS),)).build().write(tmp_path)
    whole = (folder / file_name(3)).read_bytes()
    (folder / file_name(3)).write_bytes(whole[: int(kept * len(whole))])
    diagnosis = diagnose(folder)
    assert {row.rank for row in diagnosis.partition} == {0, 1, 2}
    assert file_name(3) in said(diagnosis)
    assert not any(one.gain and one.gain.kind == "replayed" for one in diagnosis.findings)
    assert blamed(diagnosis) in ([], [[1]])
