import gzip
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reading.traces import annotation, assert_same_recording, cpu_op, kernel, trace, write
from traceinsight.reading import load
from traceinsight.trace.recording import MISSING, CommArgs, EventKind, StreamWait

EVENTS = [
    cpu_op("aten::mul", 1000, 10, 1),
    cpu_op("aten::add", 1000, 10, 2),
    cpu_op("aten::add", 1000, 20, 3),
    kernel("gemm", 1010, 50, 7, 1),
    kernel("ncclDevKernel", 1010, 50, 8, 2, **{"Collective name": "allreduce", "In msg nelems": 7}),
    annotation("ProfilerStep#1", 990, 100, 4),
    {"ph": "M", "name": "thread_name", "pid": 5, "tid": 6, "args": {"name": "main"}},
    {"ph": "s", "id": 1, "pid": 5, "tid": 6, "ts": 1000, "cat": "ac2g", "name": "ac2g"},
]


def read(tmp_path, content, name="t.json"):
    (recording,) = load(write(tmp_path / name, content)).recordings
    return recording


def notes(recording):
    return {note.code: note.count for note in recording.notes}


def test_events_are_sorted_by_start_then_longest_then_lane_then_name(tmp_path):
    recording = read(tmp_path, trace(*EVENTS))
    assert [recording.name_of(i) for i in range(len(recording.events))] == [
        "ProfilerStep#1",
        "aten::add",
        "aten::add",
        "aten::mul",
        "gemm",
        "ncclDevKernel",
    ]
    assert recording.events.dur_ns.tolist() == [100_000, 20_000, 10_000, 10_000, 50_000, 50_000]
    assert recording.events.external_id.tolist() == [4, 3, 2, 1, MISSING, MISSING]
    assert list(recording.strings) == sorted(set(recording.strings))
    assert recording.comm_args == {5: CommArgs(collective="allreduce", in_elements=7)}
    assert [(lane.pid, lane.tid, lane.name, lane.device, lane.stream) for lane in recording.lanes] == [
        ("0", "7", "", 0, 7),
        ("0", "8", "", 0, 8),
        ("5", "6", "main", None, None),
    ]
    assert recording.notes == ()


@given(st.permutations(EVENTS))
def test_the_order_of_the_file_does_not_matter(tmp_path_factory, events):
    folder = tmp_path_factory.mktemp("order")
    assert_same_recording(read(folder, trace(*events), "a.json"), read(folder, trace(*EVENTS), "b.json"))


@given(st.integers(0, 400), st.integers(0, 400), st.sampled_from([None, 0, 1, 2, "\t"]))
def test_layout_and_gzip_members_do_not_matter(tmp_path_factory, first, second, indent):
    folder = tmp_path_factory.mktemp("layout")
    text = json.dumps(
        trace(*EVENTS), indent=indent, separators=(",", ":") if indent is None else None
    ).encode()
    cuts = sorted((first, second))
    parts = [text[: cuts[0]], text[cuts[0] : cuts[1]], text[cuts[1] :]]
    packed = b"".join(gzip.compress(part) for part in parts)
    assert_same_recording(read(folder, packed, "t.json.gz"), read(folder, trace(*EVENTS), "plain.json"))


@pytest.mark.parametrize("count", [1, 7, 400, 30_000])
def test_blocks_do_not_matter(tmp_path, count):
    # Text that looks like a boundary in strings and nested lists, across several blocks.
    odd = {"Call stack": '"}, {"ph": "X", "name": "' * 3, "nested": [{"name": "a"}, {"name": "b"}]}
    events = [cpu_op(f"op{i % 5}", 1000 + i, 1, i + 1, **odd) for i in range(count)]
    recording = read(tmp_path, trace(*events))
    assert recording.events.external_id.tolist() == list(range(1, count + 1))
    assert recording.notes == ()
    assert recording.rank == 0


def test_events_written_twice_count_once(tmp_path):
    frame = {"ph": "X", "cat": "python_function", "name": "f", "pid": 5, "tid": 6, "ts": 1000, "dur": 0}
    once = trace(*EVENTS, frame, frame)  # a function called twice within a microsecond
    twice = trace(*EVENTS, frame, frame, *EVENTS, frame, frame)
    recording = read(tmp_path, twice, "twice.json")
    assert_same_recording(recording, read(tmp_path, once, "once.json"))
    assert notes(recording) == {"duplicate-events": 8}


def test_concatenated_documents_are_one_trace(tmp_path):
    first, second = trace(*EVENTS[:3]), trace(*EVENTS[3:])
    recording = read(tmp_path, json.dumps(first) + json.dumps(second))
    assert len(recording.events) == 6
    assert recording.rank == 0


def test_annotations_that_older_schemas_call_operators(tmp_path):
    names = ["ProfilerStep#3", "## forward ##", "nccl:all_reduce", "gloo:all_reduce",
             "Optimizer.step#SGD.step", "enumerate(DataLoader)#_Iter.__next__", "aten::mul"]  # fmt: skip
    events = [{**cpu_op(name, 1000 + i, 1, i + 1), "cat": "Operator"} for i, name in enumerate(names)]
    kinds = read(tmp_path, trace(*events)).events.kind.tolist()
    assert kinds == [EventKind.ANNOTATION] * 6 + [EventKind.CPU_OP]


def test_categories_of_all_schemas(tmp_path):
    expected = {
        "Kernel": EventKind.KERNEL, "Memcpy": EventKind.MEMCPY, "gpu_memcpy": EventKind.MEMCPY,
        "Memset": EventKind.MEMSET, "Runtime": EventKind.RUNTIME, "cuda_driver": EventKind.RUNTIME,
        "hip_runtime": EventKind.RUNTIME, "overhead": EventKind.OVERHEAD, "python_function": EventKind.PYTHON,
        "gpu_user_annotation": EventKind.GPU_ANNOTATION, "something new": EventKind.OTHER,
    }  # fmt: skip
    events = [
        {**kernel(category, 1000 + i, 1, 7, i + 1), "cat": category} for i, category in enumerate(expected)
    ]
    assert read(tmp_path, trace(*events)).events.kind.tolist() == list(expected.values())


def test_the_profilers_own_span_is_no_event(tmp_path):
    span = {
        "ph": "X",
        "cat": "Trace",
        "ts": 1,
        "dur": 5,
        "pid": "Spans",
        "tid": "P",
        "name": "PyTorch Profiler (0)",
    }
    assert len(read(tmp_path, trace(kernel(), span)).events) == 1


def test_begin_and_end_events_make_spans(tmp_path):
    def half(ph, ts, name="outer", tid=1):
        return {"ph": ph, "ts": ts, "pid": 1, "tid": tid, "name": name, "cat": "cpu_op"}

    events = [half("B", 1000), half("B", 1010, "inner"), half("B", 1005, "other", 2), half("E", 1020),
              half("E", 1100), half("E", 1006, "other", 2), half("E", 1200)]  # fmt: skip
    recording = read(tmp_path, events)
    assert [recording.name_of(i) for i in range(3)] == ["outer", "other", "inner"]
    assert recording.events.dur_ns.tolist() == [100_000, 1_000, 10_000]
    assert notes(recording) == {"unpaired-events": 1}


def test_unusable_times_are_dropped_and_counted(tmp_path):
    events = [
        kernel("ok", 1000, 5),
        kernel("zero", 0, 0, correlation=2),
        kernel("negative", 1000, -5, correlation=3),
        kernel("huge", 10**18, 5, correlation=4),
        kernel("text", "soon", 5, correlation=5),
        {**kernel("no duration", 2000, correlation=6), "dur": None},
    ]
    recording = read(tmp_path, trace(*events))
    assert sorted(recording.strings) == ["no duration", "ok"]
    assert notes(recording) == {
        "unreadable-time": 2, "negative-duration": 1, "lost-gpu-events": 1, "missing-duration": 1,
    }  # fmt: skip


def test_overlaps_of_microseconds_are_left_alone(tmp_path):
    events = [
        kernel("a", 1000, 12, 7, 1),
        kernel("b", 1010, 20, 7, 2),
        kernel("c", 1040, 6, 7, 3),
        kernel("d", 1041, 2, 7, 4),
    ]
    recording = read(tmp_path, trace(*events))
    assert recording.events.dur_ns.tolist() == [12_000, 20_000, 6_000, 2_000]
    assert recording.notes == ()


def test_branches_of_one_graph_launch_may_overlap_on_a_stream(tmp_path):
    events = [kernel("long", 1000, 500, 7, 1), kernel("branch", 1010, 20, 7, 1)]
    assert read(tmp_path, trace(*events)).events.dur_ns.tolist() == [500_000, 20_000]


def test_other_streams_do_not_clip(tmp_path):
    events = [kernel("long", 1000, 500, 7, 1), kernel("short", 1010, 20, 8, 2)]
    assert read(tmp_path, trace(*events)).events.dur_ns.tolist() == [500_000, 20_000]


def test_a_thread_and_a_stream_of_the_same_numbers_are_two_lanes(tmp_path):
    thread = {**cpu_op("aten::mul", 1000, 10), "pid": 1, "tid": 7}
    stream = {**kernel("gemm", 1020, 10, device=1), "pid": 1, "tid": 7}
    sync = {**kernel("Stream Sync", 1040, 5, device=1), "pid": 1, "tid": 7, "cat": "cuda_sync"}
    recording = read(tmp_path, trace(sync, stream, thread))
    assert [(lane.pid, lane.tid, lane.device, lane.stream) for lane in recording.lanes] == [
        ("1", "7", None, None),
        ("1", "7", 1, 7),
    ]
    assert recording.events.lane.tolist() == [0, 1, 1]


def stream_wait(correlation: object, **told: object) -> dict:
    args = {"wait_on_stream": 20, "wait_on_cuda_event_record_corr_id": 5, "wait_on_cuda_event_id": 1} | told
    event = kernel("Stream Wait Event", 1040, 1, **args)
    return {**event, "cat": "cuda_sync", "args": {**event["args"], "correlation": correlation, "stream": 7}}


def test_what_streams_wait_for_is_kept_where_it_was_recorded(tmp_path):
    host = stream_wait(13) | {"name": "Event Sync"}
    unknown = stream_wait(14, wait_on_cuda_event_record_corr_id=-1)  # recorded before the capture
    odd = [stream_wait("nine"), stream_wait(15, wait_on_stream=None), stream_wait(16, wait_on_stream=[3])]
    recording = read(tmp_path, trace(kernel(), stream_wait(12), host, unknown, *odd))
    assert recording.stream_waits == {12: StreamWait(stream=7, waited_stream=20, record=5)}
    assert read(tmp_path, trace(kernel())).stream_waits == {}


def test_arrays_are_read_only(tmp_path):
    recording = read(tmp_path, trace(kernel()))
    with pytest.raises(ValueError, match="read-only"):
        recording.events.start_ns[0] = 5


def test_collective_arguments_in_all_spellings(tmp_path):
    full = {
        "Collective name": "all_to_allv", "In msg nelems": "12", "Out msg nelems": 13.0, "Group size": 2,
        "dtype": "Float", "In split size": "[5, 7]", "Out split size": "[6, 7, ...]", "Process Group Name": 3,
        "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1]", "Seq": 2**64 - 1,
        "Src Rank": 1, "Dst Rank": 0,
    }  # fmt: skip
    two_tensors = {"Input Dims": [[[2, 3], [4]]], "Input type": ["TensorList"]}
    events = [
        kernel("a", 1000, **full),
        annotation("nccl:all_reduce", 2000, 5, 1, **{"Input Dims": [[2, 3]], "Input type": ["float"]}),
        annotation("gloo:all_reduce", 3000, 5, 2, **two_tensors),
        cpu_op("aten::mul", 4000, 5, 3, **{"Input Dims": [[2, 3]], "Input type": ["float"]}),
    ]
    comm = read(tmp_path, trace(*events)).comm_args
    assert comm[0] == CommArgs(
        collective="all_to_allv", in_elements=12, out_elements=13, dtype="Float",
        in_split=(5, 7), out_split=None,
        group_name="3", group_description="default_pg", group_ranks=(0, 1), group_size=2, sequence=2**64 - 1,
        peer_src=1, peer_dst=0,
    )  # fmt: skip
    assert comm[1] == CommArgs(in_elements=6, dtype="float")
    assert comm[2] == CommArgs(in_elements=10, dtype="TensorList")
    assert set(comm) == {0, 1, 2}


def test_many_events_in_any_order_keep_their_columns(tmp_path):
    generator = random.Random(5)
    rows = [(generator.randrange(50), generator.randrange(3), i + 1) for i in range(500)]
    events = [kernel(f"k{i}", 1000 + start, duration, i, i) for start, duration, i in rows]
    recording = read(tmp_path, trace(*events))
    table = recording.events
    found = {
        recording.name_of(row): (
            table.start_ns[row],
            table.dur_ns[row],
            recording.lanes[table.lane[row]].stream,
        )
        for row in range(500)
    }
    assert found == {f"k{i}": ((1000 + start) * 1000, duration * 1000, i) for start, duration, i in rows}
