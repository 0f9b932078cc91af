"""Input that is no plain file: pipes, devices, folders of the kernel, archives that are no traces."""

import bz2
import gzip
import io
import json
import lzma
import os
import socket
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.reading.traces import kernel, trace, write
from traceinsight.base.errors import UnreadableInputError, UsageError
from traceinsight.reading import load, parallel, rank_pattern, sources
from traceinsight.reading.limits import Limits

TEXT = json.dumps(trace(kernel()))
REPOSITORY = Path(__file__).parents[2]
GENEROUS_S = 120
"""For what would hang for ever if it were wrong."""

LOAD = (
    "import sys\nfrom traceinsight.reading import load\n"
    "result = load(sys.argv[1:])\n"
    "print([r.rank for r in result.recordings], [note.code for note in result.skipped], result.manifest)"
)


def shell(script: str, *arguments: object) -> "subprocess.CompletedProcess[str]":
    """Runs bash with PYTHON and LOAD set; a hang is a failure."""
    return subprocess.run(
        ["bash", "-c", script, "bash", *map(str, arguments)],
        env=os.environ | {"PYTHON": sys.executable, "LOAD": LOAD, "PYTHONPATH": str(REPOSITORY)},
        capture_output=True, text=True, check=False, timeout=GENEROUS_S,
    )  # fmt: skip


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def test_a_manifest_that_is_a_pipe_is_noted_and_not_waited_for(tmp_path):
    write(tmp_path / "rank0.json", TEXT)
    os.mkfifo(tmp_path / "run.json")
    done = shell('"$PYTHON" -c "$LOAD" "$1"', tmp_path)
    assert done.stdout == "[0] ['unreadable-manifest'] None\n", done.stderr


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/null"])
def test_a_manifest_that_is_a_device_is_noted(tmp_path, target):
    write(tmp_path / "rank0.json", TEXT)
    (tmp_path / "run.json").symlink_to(target)
    result = load(tmp_path)
    assert [(note.code, "a device" in note.message) for note in result.skipped] == [
        ("unreadable-manifest", True)
    ]


def test_a_manifest_that_is_a_link_to_a_file_is_read_and_a_huge_one_is_not(tmp_path, monkeypatch):
    write(tmp_path / "rank0.json", TEXT)
    write(tmp_path / "elsewhere", {"world_size": 2})
    (tmp_path / "run.json").symlink_to(tmp_path / "elsewhere")
    assert load(tmp_path).manifest == {"world_size": 2}
    write(tmp_path / "elsewhere", json.dumps({"world_size": 2}) + " " * (9 << 20))
    result = load(tmp_path)
    assert result.manifest is None
    assert "larger than 8 MiB" in result.skipped[0].message


def test_a_named_pipe_is_refused_when_named_and_skipped_when_found(tmp_path):
    write(tmp_path / "rank0.json", TEXT)
    os.mkfifo(tmp_path / "rank1.json")
    with pytest.raises(UsageError, match="is a named pipe"):
        load(tmp_path / "rank1.json")
    assert len(load(tmp_path).recordings) == 1
    assert len(load(str(tmp_path / "rank*.json")).recordings) == 1
    with pytest.raises(UsageError, match="matches no file"):
        load(str(tmp_path / "rank1*"))


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "file:///dev/zero"])
def test_a_device_is_refused(path):
    with pytest.raises(UsageError, match="is a device"):
        load(path)


def test_a_socket_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a socket's path may have 107 letters only
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s.json")
        with pytest.raises(UsageError, match="is a socket"):
            load("s.json")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no /proc")
@pytest.mark.parametrize("path", ["/proc/self", "/proc", "/sys"])
def test_folders_of_the_kernel_are_refused_and_not_entered_through_links(tmp_path, path):
    with pytest.raises(UsageError, match="state of the system"):
        load(path)
    write(tmp_path / "rank0.json", TEXT)
    (tmp_path / "link").symlink_to(path)
    assert len(load(tmp_path).recordings) == 1


def test_a_folder_of_too_many_folders_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "LIMITS", Limits(max_folders=3))
    for index in range(2):
        write(tmp_path / f"d{index}" / "t.json", TEXT)
    assert len(load(tmp_path).recordings) == 1  # with the copy left out
    (tmp_path / "d2").mkdir()
    with pytest.raises(UsageError, match="more than 3 folders"):
        load(tmp_path)


def test_a_file_url_is_a_local_path(tmp_path):
    path = write(tmp_path / "rank0.json", TEXT)
    assert load(f"file://{path}").recordings[0].file == str(path)
    assert load(f"local://{tmp_path}").recordings[0].file == str(path)


@pytest.mark.parametrize(
    "script",
    [
        '"$PYTHON" -c "$LOAD" <(cat "$1")',
        '"$PYTHON" -c "$LOAD" <(gzip -c "$1")',
        'cat "$1" | "$PYTHON" -c "$LOAD" /dev/stdin',
        'gzip -c "$1" | "$PYTHON" -c "$LOAD" /dev/stdin',
        '"$PYTHON" -c "$LOAD" /dev/stdin < "$1"',
        '(cat "$1" | head -c 2; sleep 0.2; tail -c +3 "$1") | "$PYTHON" -c "$LOAD" /dev/stdin',
        'cat "$1" | "$PYTHON" -c "$LOAD" /dev/stdin /dev/fd/0',
    ],
)  # fmt: skip
def test_pipes_that_were_handed_to_us_are_read(tmp_path, script):
    done = shell(script, write(tmp_path / "t.json", TEXT))
    assert done.stdout == "[0] [] None\n", done.stderr


def test_two_pipes_are_two_files(tmp_path):
    write(tmp_path / "a", TEXT)
    write(tmp_path / "b", trace(kernel(), rank=1))
    done = shell('"$PYTHON" -c "$LOAD" <(cat "$1"/a) <(gzip -c "$1"/b)', tmp_path)
    assert done.stdout == "[0, 1] [] None\n", done.stderr


def test_an_archive_from_a_pipe_is_called_one(tmp_path):
    done = shell('"$PYTHON" -c "$LOAD" <(cat "$1")', write(tmp_path / "a.zip", zipped({"t.json": TEXT})))
    assert "is a zip archive from a pipe; unpack it first" in done.stderr


def test_an_empty_path_is_called_one():
    with pytest.raises(UsageError, match="An empty path"):
        load(["", "t.json"])


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.zip", zipped({"b.zip": zipped({"t.json": TEXT})}), "a zip archive inside an archive"),
        ("a.zip", zipped({"t.json": TEXT})[:-30], "a damaged zip archive"),
        ("a.zip", zipped({"t.json": TEXT})[:-10] + b"\xff" * 10, "a damaged zip archive"),
        ("a.zip", zipped({}), "a zip archive without a trace"),
        ("a.zip", zipped({"x.txt": "a", "y.txt": "b"}), "a zip archive without a trace"),
        ("a.json", gzip.compress(gzip.compress(TEXT.encode())), "packed once more, with gzip"),
        ("a.json", gzip.compress(zipped({"t.json": TEXT})), "a zip archive in gzip"),
        ("a.json", bz2.compress(TEXT.encode()), "packed with bzip2"),
        ("a.json", lzma.compress(TEXT.encode()), "packed with xz"),
        ("a.json", b"\x28\xb5\x2f\xfd\x00", "packed with zstd"),
    ],
)
def test_what_is_packed_otherwise_is_named(tmp_path, name, content, says):
    with pytest.raises(UnreadableInputError, match=says) as caught:
        load(write(tmp_path / name, content))
    assert "cannot be read (" not in str(caught.value)


def test_a_tar_in_gzip_is_named(tmp_path):
    write(tmp_path / "t.json", TEXT)
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz") as archive:
        archive.add(tmp_path / "t.json")
    with pytest.raises(UnreadableInputError, match="packed once more, with tar"):
        load(tmp_path / "a.tar.gz")


def test_a_member_with_a_damaged_head_costs_only_itself(tmp_path):
    other = json.dumps(trace(kernel(), rank=1))
    content = bytearray(zipped({"a.json": TEXT, "b.json": other}))
    content[content.rindex(b"PK\x03\x04")] = 0
    result = load(write(tmp_path / "a.zip", bytes(content)))
    assert [recording.rank for recording in result.recordings] == [0]
    assert "cannot be unpacked" in result.skipped[0].message


def test_the_table_of_an_archive_is_read_once_and_not_once_per_member(tmp_path, monkeypatch):
    opened = []

    class Counting(zipfile.ZipFile):
        def __init__(self, *arguments):
            opened.append(1)
            super().__init__(*arguments)

    files = {
        f"rank{rank}.json": json.dumps(trace(kernel(), rank=rank, world_size=300)) for rank in range(300)
    }
    path = write(tmp_path / "a.zip", zipped(files))
    monkeypatch.setattr(zipfile, "ZipFile", Counting)
    assert len(load(path).recordings) == 300
    assert len(opened) == 2  # to list the members, and to read them


def test_an_archive_of_too_many_traces_is_refused_and_not_cut_short(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "LIMITS", Limits(max_zip_members=2))
    files = {f"rank{rank}.json": json.dumps(trace(kernel(), rank=rank)) for rank in range(2)}
    assert len(load(write(tmp_path / "a.zip", zipped(files | {"x.txt": ""}))).recordings) == 2
    with pytest.raises(UnreadableInputError, match="more than 2 traces"):
        load(write(tmp_path / "a.zip", zipped(files | {"rank2.json": TEXT})))


def test_an_endless_pattern_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(rank_pattern, "TIME_LIMIT_S", 1.0)
    path = write(tmp_path / ("a" * 60 + "rank0.json"), TEXT)  # 2**60 ways to split the letters
    with pytest.raises(UsageError, match=r"took more than 1 s on the file names"):
        load(path, rank_regex="((?:a+)+)$")


@pytest.mark.parametrize("pattern", ["(a{99999999999999999999})", "(" * 5000 + ")" * 5000])
def test_a_pattern_that_cannot_be_compiled_is_a_usage_error(tmp_path, pattern):
    with pytest.raises(UsageError):
        load(write(tmp_path / "t.json", TEXT), rank_regex=pattern)


def test_a_pattern_on_names_of_any_bytes(tmp_path):
    path = os.fsencode(tmp_path) + b"/w\xff\xfe7.json"
    Path(os.fsdecode(path)).write_text(TEXT)
    assert load(tmp_path, rank_regex=r"\udcfe(\d)").recordings[0].rank == 7
    assert load(tmp_path, rank_regex=r"^w(x)?").recordings[0].rank_source == "distributedInfo"
    assert load(tmp_path, rank_regex=r"^w(.)").recordings[0].rank_source == "distributedInfo"


def test_without_an_interpreter_to_start_the_pattern_is_matched_here(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", str(tmp_path / "no-python"))
    assert load(write(tmp_path / "w7.json", TEXT), rank_regex=r"w(\d)").recordings[0].rank == 7


def test_the_pattern_reaches_the_children(tmp_path, monkeypatch):
    monkeypatch.setattr(parallel, "MIN_FILE_BYTES", 1)
    monkeypatch.setattr(parallel, "MIN_TOTAL_BYTES", 1)
    monkeypatch.setattr(parallel, "_processors", lambda: 2)
    for rank in (5, 3):
        write(tmp_path / f"w{rank}.json", TEXT)
    result = load(tmp_path, rank_regex=r"w(\d)")
    assert [(found.rank, found.rank_source) for found in result.recordings] == [
        (3, "rank-regex"),
        (5, "rank-regex"),
    ]
