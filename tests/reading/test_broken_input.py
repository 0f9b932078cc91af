"""For any bytes: recordings and notes, or one clear error. Never a traceback, a hang or unbounded memory."""

import gzip
import json
import zipfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reading.traces import annotation, cpu_op, kernel, trace, write
from traceinsight.base.errors import UnreadableInputError
from traceinsight.reading import load
from traceinsight.reading.columns import Collector
from traceinsight.reading.events import EventReader
from traceinsight.reading.limits import Limits
from traceinsight.reading.read_file import read_file
from traceinsight.reading.sources import Source

SMALL = trace(
    kernel("gemm", 1000, 50),
    cpu_op("aten::mul", 990, 5, 1, **{"Input Dims": [[2, 3]]}),
    annotation("ProfilerStep#1", 980, 100, 2),
    {"ph": "M", "name": "thread_name", "pid": 5, "tid": 6, "args": {"name": "main"}},
    kernel(
        "ncclDevKernel", 1100, 50, 8, 3, **{"Collective name": "allreduce", "Process Group Ranks": "[0, 1]"}
    ),
    deviceProperties=[{"id": 0, "name": "NVIDIA H100", "numSms": 132}],
)
SMALL_TEXT = json.dumps(SMALL, indent=1).encode()


def read_anything(folder, content):
    """Loads the bytes; returns the recording or None, and checks that an error is of the promised sort."""
    path = write(folder / "t.json", content)
    try:
        (recording,) = load(path).recordings
    except UnreadableInputError as error:
        assert str(path) in str(error)
        assert error.exit_code == 3
        assert "cannot be read (" not in str(
            error
        )  # the last resort, which would hide a mistake of the reader
        return None
    assert len(recording.events) > 0
    assert (recording.events.dur_ns >= 0).all()
    return recording


def codes(recording):
    return {note.code: note.count for note in recording.notes}


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=400))
def test_random_bytes(tmp_path_factory, content):
    read_anything(tmp_path_factory.mktemp("fuzz"), content)


@settings(max_examples=400, deadline=None)
@given(
    st.text(alphabet='{}[]":,\\ \n019.-eEnulltrfaXph', max_size=200),
    st.sampled_from([b"[", b'{"traceEvents": [', b""]),
)
def test_random_json_like_text(tmp_path_factory, text, opening):
    read_anything(tmp_path_factory.mktemp("fuzz"), opening + text.encode())


@settings(max_examples=500, deadline=None)
@given(st.data())
def test_mutations_of_a_trace(tmp_path_factory, data):
    content = bytearray(SMALL_TEXT)
    for _ in range(data.draw(st.integers(1, 4))):
        position = data.draw(st.integers(0, len(content) - 1))
        how = data.draw(st.sampled_from(["set", "insert", "delete", "copy"]))
        if how == "set":
            content[position] = data.draw(st.integers(0, 255))
        elif how == "insert":
            content[position:position] = data.draw(
                st.sampled_from([b'"', b"{", b"}", b"]", b"[", b"\n", b",", b"\xff", b"NaN", b"\\"])
            )
        elif how == "delete":
            del content[position : position + data.draw(st.integers(1, 40))]
        else:
            content[position:position] = content[: data.draw(st.integers(1, 200))]
    read_anything(tmp_path_factory.mktemp("fuzz"), bytes(content))


@settings(max_examples=200, deadline=None)
@given(st.integers(0, len(gzip.compress(SMALL_TEXT))), st.integers(0, 255))
def test_damaged_gzip(tmp_path_factory, position, value):
    packed = bytearray(gzip.compress(SMALL_TEXT, mtime=0))
    packed[min(position, len(packed) - 1)] = value
    read_anything(tmp_path_factory.mktemp("fuzz"), bytes(packed))
    read_anything(tmp_path_factory.mktemp("fuzz"), bytes(packed[:position]))


def test_truncation_at_every_byte_keeps_every_whole_event(tmp_path):
    ends = []  # where each duration event's text is complete
    for index, event in enumerate(SMALL["traceEvents"]):
        if event["ph"] == "X":
            before = json.dumps({**SMALL, "traceEvents": SMALL["traceEvents"][: index + 1]}, indent=1)
            ends.append(before.index("\n ],", before.index('"traceEvents"')))
    for length in range(len(SMALL_TEXT)):
        recording = read_anything(tmp_path, SMALL_TEXT[:length])
        whole = sum(length >= end for end in ends)
        assert (len(recording.events) if recording else 0) == whole, length
        if recording and length < ends[-1]:
            assert "truncated-file" in codes(recording)


def broken_between(middle):
    good = [json.dumps(kernel(f"k{i}", 1000 + 100 * i, 50, 7, i + 1)) for i in range(4)]
    return (
        '{"traceEvents": ['
        + ",\n".join([*good[:2], middle, *good[2:]])
        + '], "distributedInfo": {"rank": 3}}'
    )


@pytest.mark.parametrize(
    ("middle", "events", "notes"),
    [
        ('{"ph": "X", "name": "x", "ts": 5, "dur": 1, "args": {"queued": N/A}}', 5, {"repaired-events": 1}),
        ('{"ph": "X", "name": "x", "ts": NaN, "dur": 1}', 4, {"repaired-events": 1, "unreadable-time": 1}),
        ('{"ph": "X", "name": "x", "ts": 5, "dur": -Infinity}', 4,
         {"repaired-events": 1, "unreadable-time": 1}),
        ('{"ph": "X", "name": "a"b"c", "ts": 5, "dur": 1}', 5, {"repaired-events": 1}),
        ('{"ph": "X", "name": "a\nb\t\x00", "ts": 5, "dur": 1}', 5, {"repaired-events": 1}),
        ('{"ph": "X", "name": "C:\\d", "ts": 5, "dur": 1}', 5, {"repaired-events": 1}),
        ('{"ph": "X", "name": "\\ud800", "ts": 5, "dur": 1}', 5, {"repaired-events": 1}),
        ('{"ph": "X", "name": 5, "ts": 5, "dur": 1, "args": []}', 5, {}),
        ('{"ph": "?", "name": "x", "ts": 5, "dur": 1}', 4, {}),
        ('{"name": "x", "ts": 5}', 4, {}),
        ('{"ph": "X", "name": "x", "ts": 5, "dur": 1, "pid": [1], "tid": {"a": 2}}', 5, {}),
        ('{"ph": "X", "name": "x", "ts": 5, "dur": 1, "pid": ' + "9" * 5000 + "}", 5, {}),
        ('{"ph": "X", "name": "x", "ts": 5, "dur": 1, "args": {"correlation": 1e400}}', 5, {}),
        ('{"ph": "X", "name": "x", "ts": 5, "dur"', 4, {"lost-events": 1}),
        ('{"ph": "X", "name": "x", "ts": 5 "dur": 1}', 4, {"lost-events": 1}),
        ('{"ph": "X", "name": "x", "args": ' + "[" * 100_000 + "]" * 100_000 + "}", 4, {"lost-events": 1}),
    ],
)  # fmt: skip
def test_one_broken_event_costs_at_most_itself(tmp_path, middle, events, notes):
    recording = read_anything(tmp_path, broken_between(middle))
    assert len(recording.events) == events
    assert codes(recording) == notes
    assert recording.rank == 3


@pytest.mark.parametrize(
    "middle",
    [
        '{"ph": "?", "name": "x"}', '{"ph": "X", "ts": 5 "dur": 1}', '{"ph": "X", "ts": 5, "name": "a"b"}',
        '{"ph": "X", "ts": 5, "args": {"a": [{"name": 1}, {"name": "}, {"}]}}',
    ],
)  # fmt: skip
def test_where_the_blocks_end_does_not_matter(middle):
    text = broken_between(middle).encode()

    def read(size):
        collector = Collector()
        reader = EventReader(Limits(), collector.take)
        reader.read(text[start : start + size] for start in range(0, len(text), size))
        counts = (reader.lost, reader.repaired, reader.first_problem, reader.closed, bytes(reader.outside))
        return list(collector.names), collector.rows, counts

    whole = read(len(text))
    for size in range(1, len(text)):
        assert read(size) == whole, size


def test_a_note_says_where_the_problem_is(tmp_path):
    text = broken_between('{"ph": "X", "ts": 5 "dur": 1}')
    (note,) = read_anything(tmp_path, text).notes
    assert f"byte {text.index('5 ') - len('{`ph`: `X`, `ts`: ')} " in note.message
    assert (note.rank, note.severity) == (3, "error")


def test_the_same_fault_in_every_event_of_a_large_file(tmp_path):
    events = ",\n".join(
        f'{{"ph": "X", "cat": "kernel", "name": "k", "ts": {i}, "dur": 1, "args": {{"queued": N/A}}}}'
        for i in range(1, 60_001)
    )
    recording = read_anything(tmp_path, '{"traceEvents": [' + events + "]}")
    assert len(recording.events) == 60_000
    assert "lost-events" not in codes(recording)


@pytest.mark.parametrize(
    "content",
    [
        b"", b" \n", b"[]", b"{}", b"null", b"5", b'"text"', b"[1, 2]",
        b'{"traceEvents": []}', b'{"traceEvents": [',
        b'{"nodes": [{"id": 1}], "schema": "1.1.1-chakra.0.0.4"}', b"[" * 1_000_000, b'{"a":' * 1_000_000,
        b'{"traceEvents": [' + b"[" * 1_000_000, b'{"traceEvents": [' + b'{"ph":' * 300_000,
        b'{"traceEvents": [' + b" " * 3_000_000 + b"}" + b" " * 3_000_000, b'[{"name": "' + b"x" * 3_000_000,
        b'{"traceEvents": [{"ph": "X", "name": ' + b'"name": "' * 200_000,
        b"\x1f\x8b", b"PK\x03\x04", b"\x00" * 100,
        b'{"traceEvents": [' + b"} {" * 300_000, b'{"traceEvents": [' + b'}, {"ph" : ' * 100_000,
    ],
    ids=range(23),
)  # fmt: skip
def test_nothing_usable_is_one_clear_error(tmp_path, content):
    assert read_anything(tmp_path, content) is None


def test_a_gzip_bomb_ends_with_a_clear_error(tmp_path):
    limits = Limits(ratio_from_bytes=1 << 20)
    bomb = b'{"traceEvents": [' + b" " * (64 << 20)
    path = write(tmp_path / "bomb.json.gz", gzip.compress(bomb))
    outcome = read_file(Source(str(path)), limits=limits)
    assert outcome.recording is None
    assert "400-fold" in outcome.notes[0].message


def test_more_text_than_memory_ends_with_a_clear_error(tmp_path):
    path = write(tmp_path / "t.json", SMALL_TEXT + b" " * 3_000_000)
    outcome = read_file(Source(str(path)), limits=Limits(max_text_bytes=2_000_000))
    assert "memory" in outcome.notes[0].message


def test_a_zip_bomb_ends_with_a_clear_error(tmp_path):
    path = tmp_path / "bomb.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("t.json", b'{"traceEvents": [' + b" " * (64 << 20))
    outcome = read_file(Source(str(path), "t.json"), limits=Limits(ratio_from_bytes=1 << 20))
    assert "400-fold" in outcome.notes[0].message


def test_a_stretch_without_events_is_bounded(tmp_path):
    text = (
        b'[{"ph": "X", "name": "a", "ts": 1, "dur": 1},'
        + b"x" * 3_000_000
        + b',{"ph": "X", "name": "b", "ts": 3, "dur": 1}]'
    )
    path = write(tmp_path / "t.json", text)
    limits = Limits(block_bytes=100_000, max_event_bytes=500_000)
    outcome = read_file(Source(str(path)), limits=limits)
    assert outcome.recording is not None
    assert "a" in outcome.recording.strings
    assert "lost-events" in codes(outcome.recording)
