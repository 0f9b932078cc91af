import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reading.traces import kernel, trace, write
from traceinsight.base.errors import UsageError
from traceinsight.reading import load

SECOND = 1_000_000  # in the file's microseconds
EPOCH = 1_700_000_000 * SECOND


def capture(rank, at=0.0, length=1.0, world_size=8):
    start = EPOCH + round(at * SECOND)
    events = [
        kernel("first", start, 10),
        kernel("last", start + round(length * SECOND) - 10, 10, correlation=2),
    ]
    return trace(*events, rank=rank, world_size=world_size)


def names(result):
    return [recording.file.rsplit("/", 1)[-1] for recording in result.recordings]


def other_ranks(result):
    return [run.ranks for run in result.other_runs]


def test_ranks_that_begin_seconds_apart_are_one_run(tmp_path):
    for rank in range(4):
        write(tmp_path / f"{rank}.json", capture(rank, at=3 * rank))
    result = load(tmp_path)
    assert names(result) == ["0.json", "1.json", "2.json", "3.json"]
    assert result.other_runs == ()
    assert [note.code for note in result.skipped] == ["captures-apart"]


def test_captures_minutes_apart_are_two_runs_even_of_different_ranks(tmp_path):
    write(tmp_path / "early.json", capture(0))
    write(tmp_path / "late.json", capture(1, at=200))
    result = load(tmp_path)
    assert names(result) == ["late.json"]
    assert other_ranks(result) == [(0,)]
    assert result.other_runs[0].start == "2023-11-14T22:13:20Z"


def test_files_that_a_smaller_job_left_of_a_larger_one_are_another_run(tmp_path):
    # Four ranks wrote four files; twenty seconds later two ranks overwrote two of them.
    for rank in range(2):
        write(tmp_path / f"{rank}.json", capture(rank, at=20, world_size=2))
        write(tmp_path / f"{rank + 2}.json", capture(rank + 2, world_size=4))
    result = load(tmp_path)
    assert names(result) == ["0.json", "1.json"]
    assert other_ranks(result) == [(2, 3)]


def test_a_wrong_world_size_parts_no_rank_from_those_captured_with_it(tmp_path):
    for rank, world_size in enumerate((4, 4, 3, None)):
        write(tmp_path / f"{rank}.json", capture(rank, at=rank / 8, world_size=world_size))
    assert names(load(tmp_path)) == ["0.json", "1.json", "2.json", "3.json"]


def test_a_file_that_names_no_world_goes_with_what_was_captured_nearest(tmp_path):
    write(tmp_path / "0.json", capture(0, at=20, world_size=2))
    write(tmp_path / "1.json", capture(1, at=19, world_size=None))
    write(tmp_path / "2.json", capture(2, world_size=4))
    assert names(load(tmp_path)) == ["0.json", "1.json"]


def test_run_numbers_count_from_the_oldest(tmp_path):
    for number in range(3):
        write(tmp_path / f"{number}.json", capture(0, at=100 * number))
    assert names(load(tmp_path)) == ["2.json"]
    assert [names(load(tmp_path, run=number)) for number in (1, 2, 3)] == [["0.json"], ["1.json"], ["2.json"]]
    for number in (0, 4, -1):
        with pytest.raises(UsageError, match=r"There is no run .*1 to 3"):
            load(tmp_path, run=number)


@given(st.permutations([(rank, turn) for rank in range(3) for turn in range(3)]), st.integers(0, 8))
def test_repeated_captures_in_quick_succession(tmp_path_factory, files, lost):
    """Three captures of three ranks, 2 s apart, clocks up to 60 ms apart; one file may be missing."""
    folder = tmp_path_factory.mktemp("repeat")
    skew = {0: 0.0, 1: 0.06, 2: -0.03}
    kept = [file for index, file in enumerate(files) if index != lost]
    for rank, turn in kept:
        write(folder / f"{turn}-{rank}.json", capture(rank, at=2 * turn + skew[rank], length=1.98))
    for turn in range(3):
        expected = [f"{turn}-{rank}.json" for rank in range(3) if (rank, turn) in kept]
        assert names(load(folder, run=turn + 1)) == expected


def test_a_copy_is_dropped_with_a_note(tmp_path):
    write(tmp_path / "a.json", capture(0))
    write(tmp_path / "b.json", capture(0))
    write(tmp_path / "c.json", capture(1))
    result = load(tmp_path)
    assert names(result) == ["a.json", "c.json"]
    assert [(note.code, note.file) for note in result.skipped] == [
        ("duplicate-file", str(tmp_path / "b.json"))
    ]


def test_same_ranks_at_the_same_time_in_two_folders_are_two_runs(tmp_path):
    for job, rank in itertools.product("ab", range(2)):
        write(tmp_path / job / f"{rank}.json", capture(rank, at=0.1 if job == "b" else 0))
    result = load(tmp_path)
    assert [recording.file for recording in result.recordings] == [
        str(tmp_path / "b" / f"{r}.json") for r in (0, 1)
    ]
    assert other_ranks(result) == [(0, 1)]


def test_one_folder_per_rank_is_one_run(tmp_path):
    for rank in range(3):
        write(tmp_path / f"rank{rank}" / "trace.json", capture(rank))
    assert [recording.rank for recording in load(tmp_path).recordings] == [0, 1, 2]


def test_the_manifest_lies_beside_the_traces_or_above_their_folders(tmp_path):
    for rank in range(2):
        write(tmp_path / f"rank{rank}" / "trace.json", capture(rank))
    write(tmp_path / "run.json", {"schema": 1})
    assert load(tmp_path).manifest == {"schema": 1}
    assert load(tmp_path / "rank0").manifest is None


def test_one_folder_per_node_is_one_run_when_the_world_fits(tmp_path):
    for rank in range(4):
        write(tmp_path / f"node{rank // 2}" / f"{rank}.json", capture(rank, world_size=4))
    assert [recording.rank for recording in load(tmp_path).recordings] == [0, 1, 2, 3]


def test_folders_of_different_worlds_stay_apart(tmp_path):
    for rank in range(4):
        write(tmp_path / f"job{rank // 2}" / f"{rank}.json", capture(rank, world_size=4 + rank // 2))
    assert len(load(tmp_path).other_runs) == 1


def test_two_files_without_a_rank_are_never_one_run(tmp_path):
    for index in range(2):
        start = EPOCH + index
        write(tmp_path / f"{'ab'[index]}.json", trace(kernel(ts=start), rank=None))
    assert len(load(tmp_path).other_runs) == 1


def test_times_that_are_no_date_are_given_as_seconds(tmp_path):
    write(tmp_path / "a.json", trace(kernel(ts=5 * SECOND)))
    write(tmp_path / "b.json", trace(kernel(ts=500 * SECOND)))
    assert load(tmp_path).other_runs[0].start == "5.000 s on the trace's clock"
