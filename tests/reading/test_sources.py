import gzip
import json
import zipfile

import fsspec
import pytest

from tests.reading.traces import assert_same_recording, kernel, trace, write
from traceinsight.base.errors import UnreadableInputError, UsageError
from traceinsight.reading import load

TEXT = json.dumps(trace(kernel()))


def ranks(result):
    return [recording.rank for recording in result.recordings]


@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t.dat", "no extension"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_compression_is_told_by_content(tmp_path, name, pack):
    path = write(tmp_path / name, pack(TEXT.encode()))
    assert ranks(load(path)) == [0]
    assert ranks(load(str(path))) == [0]


def test_zip_archive(tmp_path):
    path = tmp_path / "run.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/rank0.json", TEXT)
        archive.writestr("a/rank1.json.gz", gzip.compress(json.dumps(trace(kernel(), rank=1)).encode()))
        archive.writestr("notes.txt", "hello")
    result = load(path)
    assert ranks(result) == [0, 1]
    assert result.recordings[0].file == f"{path}!a/rank0.json"


def test_archives_without_traces_and_damaged_ones(tmp_path):
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("model/data.pkl", b"x")
        archive.writestr("model/version", b"3")
    with pytest.raises(UnreadableInputError, match=r"model\.pt"):
        load(tmp_path / "model.pt")
    damaged = tmp_path / "damaged.zip"
    with zipfile.ZipFile(damaged, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.json", TEXT * 50)
    content = bytearray(damaged.read_bytes())
    content[60:90] = bytes(30)
    with pytest.raises(UnreadableInputError, match=r"damaged\.zip"):
        load(write(damaged, bytes(content)))
    with pytest.raises(UnreadableInputError, match=r"damaged\.zip"):
        load(write(damaged, bytes(content[:80])))


def test_folder_is_searched_to_the_bottom_and_links_in_a_circle_end(tmp_path):
    write(tmp_path / "a" / "b" / "t.json", TEXT)
    (tmp_path / "a" / "loop").symlink_to(tmp_path)
    assert len(load(tmp_path).recordings) == 1


def test_hidden_folders_are_entered_only_when_named(tmp_path):
    write(tmp_path / "t.json", TEXT)
    hidden = write(tmp_path / ".earlier" / "a" / "t.json", json.dumps(trace(kernel(), rank=1))).parent
    assert ranks(load(tmp_path)) == ranks(load(tmp_path.as_uri())) == [0]
    assert ranks(load(hidden)) == ranks(load(hidden.as_uri())) == [1]
    with zipfile.ZipFile(tmp_path / "packed", "w") as archive:
        archive.writestr("t.json", TEXT)
        archive.writestr("job/.earlier/t.json", json.dumps(trace(kernel(), rank=1)))
    assert ranks(load(tmp_path / "packed")) == [0]


def test_glob_and_several_paths(tmp_path):
    for rank in range(11):
        write(tmp_path / f"rank{rank}.json", trace(kernel(), rank=None))
    assert ranks(load(str(tmp_path / "rank*.json"))) == list(range(11))
    assert ranks(load([tmp_path / "rank3.json", tmp_path / "rank2.json", tmp_path / "rank3.json"])) == [2, 3]


def test_a_name_with_glob_letters_is_a_name_first(tmp_path):
    assert ranks(load(write(tmp_path / "t[1].json", TEXT))) == [0]


def test_fsspec_urls(tmp_path):
    files = fsspec.filesystem("memory")
    files.pipe("/bucket/rank0.json", TEXT.encode())
    files.pipe("/bucket/rank1.json.gz", gzip.compress(json.dumps(trace(kernel(), rank=1)).encode()))
    files.pipe("/bucket/run.json", b'{"schema": 1}')
    try:
        result = load("memory://bucket")
        assert ranks(result) == [0, 1]
        assert result.manifest == {"schema": 1}
        assert ranks(load("memory://bucket/*.gz")) == [1]
        assert ranks(load("memory://bucket/rank0.json")) == [0]
        with pytest.raises(UsageError, match="matches no file"):
            load("memory://bucket/nothing.json")
    finally:
        files.rm("/bucket", recursive=True)
    (recording,) = load(write(tmp_path / "t.json", TEXT)).recordings
    assert_same_recording(recording, result.recordings[0])


@pytest.mark.parametrize("path", ["missing.json", "missing/*.json", "nosuchprotocol://x/t.json", ""])
def test_a_path_that_matches_nothing_is_a_usage_error(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as caught:
        load(path)
    assert caught.value.exit_code == 2


def test_an_empty_folder_is_unreadable_and_no_path_a_usage_error(tmp_path):
    with pytest.raises(UnreadableInputError, match=r"holds no \.json"):
        load(tmp_path)
    with pytest.raises(UsageError, match="No trace was named"):
        load([])


def test_other_json_is_skipped_by_content_and_listed(tmp_path):
    write(tmp_path / "t.json", TEXT)
    write(tmp_path / "execution_trace.json", {"schema": "1.1.1-chakra.0.0.4", "nodes": [{"id": 1}]})
    write(tmp_path / "truth.json", {"late": 3})
    write(tmp_path / "list.json", [{"a": 1}, {"a": 2}])
    write(tmp_path / "run.json", {"schema": 1, "world_size": 2})
    result = load(tmp_path)
    assert len(result.recordings) == 1
    assert sorted((note.code, note.severity) for note in result.skipped) == [("not-a-trace", "info")] * 3
    assert result.manifest == {"schema": 1, "world_size": 2}


def test_the_truth_beside_a_simulated_run_needs_no_note(tmp_path):
    truth = '{"schema_version":1,"simulated":true,"spec":{"name":"x"},"steps":[]}'
    write(tmp_path / "truth.json", truth)
    with pytest.raises(UnreadableInputError, match="truth of a simulated run, and no trace"):
        load(tmp_path)
    write(tmp_path / "t.json", TEXT)
    assert load(tmp_path).skipped == ()
    named = load([tmp_path / "t.json", tmp_path / "truth.json"]).skipped
    assert [note.code for note in named] == ["not-a-trace"]
    write(tmp_path / "copy.json", truth)
    assert [note.file for note in load(tmp_path).skipped] == [str(tmp_path / "copy.json")]


def test_a_broken_file_does_not_end_the_others(tmp_path):
    write(tmp_path / "rank0.json", TEXT)
    write(tmp_path / "rank1.json", b"")
    write(tmp_path / "rank2.json.gz", gzip.compress(b"x" * 100)[:20])
    result = load(tmp_path)
    assert ranks(result) == [0]
    assert {(note.severity, note.file) for note in result.skipped} == {
        ("error", str(tmp_path / "rank1.json")),
        ("error", str(tmp_path / "rank2.json.gz")),
    }


def test_only_broken_files_are_one_error_that_names_them(tmp_path):
    for index in range(5):
        write(tmp_path / f"rank{index}.json", b"")
    with pytest.raises(UnreadableInputError, match=r"None of 5 files .*rank0.*\(and 2 more\)"):
        load(tmp_path)


def test_a_broken_manifest_is_noted(tmp_path):
    write(tmp_path / "t.json", TEXT)
    write(tmp_path / "run.json", "{")
    result = load(tmp_path)
    assert result.manifest is None
    assert [note.code for note in result.skipped] == ["unreadable-manifest"]


def test_a_folder_named_run_json_and_a_file_without_permission(tmp_path):
    (tmp_path / "run.json").mkdir()
    write(tmp_path / "t.json", TEXT)
    assert load(tmp_path).manifest is None
