from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.reading.traces import kernel, trace, write
from traceinsight.reading import load
from traceinsight.reading.timestamps import MAX_US, from_numbers, from_texts


def texts_of_times():
    whole = st.integers(0, MAX_US - 1)
    fraction = st.text("0123456789", min_size=1, max_size=9)
    return st.one_of(
        whole.map(str),
        st.tuples(whole, fraction).map(lambda pair: f"{pair[0]}.{pair[1]}"),
        st.tuples(st.integers(1, 9_999), st.integers(-9, 11)).map(lambda pair: f"{pair[0]}e{pair[1]}"),
        whole.map(lambda number: f"-{number}"),
    )


@given(st.lists(texts_of_times(), min_size=1, max_size=20))
def test_texts_are_read_to_the_nearest_nanosecond(texts):
    nanos, readable = from_texts([text.encode() for text in texts])
    assert readable.all()
    for text, found in zip(texts, nanos.tolist(), strict=True):
        assert abs(Decimal(text) * 1000 - found) <= Decimal("0.5")


@given(st.lists(st.integers(0, 8_796_093_022_207_999), min_size=1, max_size=20))
def test_floats_with_three_decimals_are_exact_up_to_the_bound(nanos):
    numbers = [float(f"{value // 1000}.{value % 1000:03d}") for value in nanos]
    found, readable = from_numbers(numbers)
    assert readable.all()
    assert found.tolist() == nanos


def test_floats_that_lost_digits_are_refused():
    assert from_numbers([1712195918012345.678]) is None
    assert from_numbers([1.5, "2"]) is None


@pytest.mark.parametrize(
    "text",
    [b"", b"abc", b"1.2.3", b"NaN", b"Infinity", b"1e999999999", b"9" * 30, b"9" * 5000, b"1e", b"\xff"],
)
def test_what_is_no_time_is_flagged(text):
    nanos, readable = from_texts([text, b"2"])
    assert readable.tolist() == [False, True]
    assert nanos[1] == 2000


@pytest.mark.parametrize(
    ("ts", "nanos"),
    [
        ("1712195918012345.678", 1_712_195_918_012_345_678),
        ('"1712195918012345.678"', 1_712_195_918_012_345_678),
        ("1712195918012345", 1_712_195_918_012_345_000),
        ("6322354329901.737", 6_322_354_329_901_737),
        ("1000.0005", 1_000_000),
        ("1000.0016", 1_000_002),
        ("1e3", 1_000_000),
    ],
)
def test_a_file_keeps_every_digit(tmp_path, ts, nanos):
    text = '{"traceEvents": [{"ph": "X", "name": "a", "cat": "cpu_op", "ts": TS, "dur": 1.5}]}'.replace(
        "TS", ts
    )
    (recording,) = load(write(tmp_path / "t.json", text)).recordings
    assert recording.events.start_ns.tolist() == [nanos]
    assert recording.events.dur_ns.tolist() == [1500]


def test_clock_base_is_added_and_the_display_unit_is_not_applied(tmp_path):
    content = trace(
        kernel(ts=1000.5, dur=2), baseTimeNanoseconds=1_711_964_646_000_000_001, displayTimeUnit="ms"
    )
    (recording,) = load(write(tmp_path / "t.json", content)).recordings
    assert recording.events.start_ns.tolist() == [1_711_964_646_000_000_001 + 1_000_500]
    assert recording.events.dur_ns.tolist() == [2000]
