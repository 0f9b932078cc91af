"""Values that cannot be: taken for not recorded, counted, and never allowed to cost memory."""

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reading.traces import annotation, kernel, trace, write
from traceinsight.reading import load
from traceinsight.reading.texts import MAX_NAME_LENGTH, shortened
from traceinsight.trace.recording import CommArgs

REPOSITORY = Path(__file__).parents[2]


def read(tmp_path, content):
    (recording,) = load(write(tmp_path / "t.json", content)).recordings
    return recording


def notes(recording):
    return {note.code: note.count for note in recording.notes}


@pytest.mark.parametrize(
    ("key", "attribute", "good", "bad"),
    [
        ("In msg nelems", "in_elements", [0, "7", 2**53], [-5, "-5", 2**53 + 1, 10**30, 1.5, "x", [1], True]),
        ("Out msg nelems", "out_elements", [0, 7], [-1, 10**18]),
        ("Group size", "group_size", [1, 10**6], [-2, 10**6 + 1, "many"]),
        ("Src Rank", "peer_src", [0, 3], [-2, 10**9]),
        ("In split size", "in_split", ["[1, 0]", [1, 0]], ["[1, -2]", [10**18]]),
        ("Out split size", "out_split", [[1, 2]], [[-1]]),
        ("Process Group Ranks", "group_ranks", ["[0, 1]", [5, 3]], ["[-1, 0]", "[0, 0]", [10**6], [0, 1, 1]]),
    ],
)  # fmt: skip
def test_arguments_of_collectives(tmp_path, key, attribute, good, bad):
    def args(value):
        recording = read(tmp_path, trace(kernel("k", **{"Collective name": "allreduce", key: value})))
        return getattr(recording.comm_args[0], attribute), notes(recording)

    for value in good:
        expected = json.loads(value) if isinstance(value, str) else value
        expected = tuple(expected) if isinstance(expected, list) else expected
        assert args(value) == (expected, {})
    for value in bad:
        assert args(value) == (None, {"unusable-collective-args": 1}), value


@pytest.mark.parametrize(
    ("key", "value"),
    [("Src Rank", -1), ("In msg nelems", ""), ("In msg nelems", None), ("Group size", 0),
     ("Process Group Ranks", "[0, 1, ...]"), ("Process Group Ranks", "[]"), ("In split size", [])],
)  # fmt: skip
def test_what_stands_for_nothing_is_no_fault(tmp_path, key, value):
    recording = read(tmp_path, trace(kernel("k", **{"Collective name": "allreduce", key: value})))
    assert recording.comm_args == {0: CommArgs(collective="allreduce")}
    assert recording.notes == ()


def test_input_dims_beyond_any_tensor(tmp_path):
    dims = {"Input Dims": [[2**30, 2**30]], "Input type": ["float"]}
    recording = read(tmp_path, trace(annotation("nccl:all_reduce", **dims)))
    assert recording.comm_args == {0: CommArgs(dtype="float")}
    assert notes(recording) == {"unusable-collective-args": 1}


def test_each_event_counts_once(tmp_path):
    bad = {"Collective name": "allreduce", "In msg nelems": -1, "Out msg nelems": -1, "Group size": -1}
    events = [kernel("k", 1000 + i, 1, 7, i + 1, **bad) for i in range(3)]
    assert notes(read(tmp_path, trace(*events))) == {"unusable-collective-args": 3}


@pytest.mark.parametrize("world", [0, -5, 10**6 + 1, 10**9, 10**30, "x", 2.5, [1], True])
def test_an_impossible_world_size(tmp_path, world):
    recording = read(tmp_path, trace(kernel(), world_size=world))
    assert (recording.rank, recording.world_size) == (0, None)
    assert notes(recording) == {"impossible-world-size": 1}
    assert recording.notes[0].rank == 0


@pytest.mark.parametrize("rank", [-1, -(10**9), 10**30, "x", 0.5, [0], {}, False])
def test_an_impossible_rank(tmp_path, rank):
    recording = read(tmp_path, trace(kernel(), rank=rank))
    assert (recording.rank, recording.world_size) == (None, 2)
    assert notes(recording) == {"impossible-rank": 1}


@pytest.mark.parametrize("world", [1, "4", 4.0, 10**6])
def test_possible_world_sizes(tmp_path, world):
    recording = read(tmp_path, trace(kernel(), world_size=world))
    assert recording.world_size == int(world)
    assert recording.notes == ()


def test_ranks_of_a_group_that_cannot_be_are_not_recorded(tmp_path):
    content = trace(kernel(), rank=0, world_size=None)
    config = [
        {"pg_name": str(i), "pg_desc": "default_pg", "ranks": ranks}
        for i, ranks in enumerate([[-1], [0, 0], [0, 1]])
    ]
    content["distributedInfo"]["pg_config"] = config
    recording = read(tmp_path, content)
    assert [group.ranks for group in recording.process_groups] == [(), (), (0, 1)]
    assert recording.world_size == 2


def test_a_billion_ranks_cost_no_memory(tmp_path):
    """A set of 10^9 ranks would take 60 GB; 4 GB of addresses must do."""
    group = {"Collective name": "allreduce", "Process Group Description": "default_pg", "Group size": 10**9}
    for rank in range(2):
        events = [kernel(f"k{i}", 1000 + i, 1, 7, i + 1, **group) for i in range(3)]
        write(tmp_path / f"rank{rank}.json", trace(*events, rank=rank, world_size=10**9))
    code = "import sys; from traceinsight import api; print(api.analyze(sys.argv[1]).run.world_size)"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30)),
        env=os.environ | {"PYTHONPATH": str(REPOSITORY), "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "None\n"), done.stderr


def test_long_names_are_cut_and_stay_apart(tmp_path):
    long = "x" * 1_000_000
    events = [kernel(long + end, 1000 + i, 1, 7, i + 1) for i, end in enumerate(["a", "b", "a"])]
    recording = read(tmp_path, trace(*events, kernel("y" * MAX_NAME_LENGTH, 2000, 1, 7, 9)))
    assert notes(recording) == {"cut-names": 3}
    names = [recording.name_of(index) for index in range(4)]
    assert names[0] == names[2] != names[1]
    assert names[0].startswith("xxx")
    assert "[1000001 characters, " in names[0]
    assert list(map(len, names)) == [MAX_NAME_LENGTH] * 4
    assert names[3] == "y" * MAX_NAME_LENGTH


def test_other_long_texts_are_cut_too(tmp_path):
    long = "x" * 10_000
    content = trace(
        {**kernel("k", **{"Collective name": long, "Process Group Name": long}), "cat": long, "tid": long},
        {"ph": "M", "name": "thread_name", "pid": 0, "tid": long, "args": {"name": long}},
        deviceProperties=[{"id": 0, "name": long}],
        hostname=long,
    )
    content["distributedInfo"] |= {
        "backend": long,
        "pg_config": [{"pg_name": long, "pg_desc": long, "ranks": [0]}],
    }
    recording = read(tmp_path, content)
    (lane,), (device,), (group,) = recording.lanes, recording.devices, recording.process_groups
    args = recording.comm_args[0]
    cut = shortened(long)
    assert len(cut) == MAX_NAME_LENGTH
    for text in (lane.name, device.name, group.name, group.description, recording.backend, recording.host,
                 args.collective, args.group_name):  # fmt: skip
        assert text == cut
    assert lane.tid == shortened(long, 200)
    assert len(lane.tid) == 200
    assert recording.notes == ()


def test_threads_of_long_names_stay_apart(tmp_path):
    events = [{**kernel("k", 1000 + i, 1, 7, i + 1), "tid": "t" * 300 + str(i)} for i in range(2)]
    assert len(read(tmp_path, trace(*events)).lanes) == 2


def test_a_time_that_the_base_carries_out_of_range_costs_its_event_only(tmp_path):
    """Differences of two times must fit int64: 2**62 ns is the end, 2116 as a date."""
    base, end_us = 1_760_000_000_000_000_000, (2**62 - 1_760_000_000_000_000_000) // 1000
    last, late = kernel("last", ts=end_us - 10, dur=10), kernel("late", ts=end_us, dur=10)
    recording = read(tmp_path, trace(last, late, baseTimeNanoseconds=base))
    assert [recording.strings[name] for name in recording.events.name] == ["last"]
    assert int(recording.events.end_ns[0]) == base + end_us * 1000
    assert notes(recording) == {"unreadable-time": 1}
