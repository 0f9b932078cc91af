"""Waits that CUDA's synchronisation events tell: of these nothing is inferred."""

from dataclasses import replace
from typing import Any

import pytest

from tests.replay.jobs import assembled, starts
from tests.trace.recordings import MS, US, call, kernel, launched, recording, step
from traceinsight.trace.recording import StreamWait

RECORD, WAIT = 50, 51


def told(wait: StreamWait) -> Any:
    """`b` runs behind `own` on stream 7; `a` and `later` run on stream 20, `other` on stream 24.

    The event is recorded between the launches of `a` and `later`; then a stream is let wait and `b` launched.
    """
    rows = [
        launched(kernel("own", 14 * US, 300 * US, 1, 7), 10 * US),
        launched(kernel("a", 16 * US, 100 * US, 2, 20), 12 * US),
        call("cudaEventRecord", 13 * US, 14 * US, RECORD),
        launched(kernel("later", 100 * US, 250 * US, 3, 20), 15 * US),
        launched(kernel("other", 22 * US, 300 * US, 4, 24), 17 * US),
        call("cudaStreamWaitEvent", 19 * US, 20 * US, WAIT),
        launched(kernel("b", 300 * US, 400 * US, 5, 7), 21 * US),
    ]
    one = recording(step(0, 0, 2 * MS), *rows, backend="nccl", world_size=1)
    return assembled(replace(one, stream_waits={WAIT: wait}))


@pytest.mark.parametrize(
    ("longer", "expected"),
    [
        ({"a": 784 * US}, 800),  # from 16 to 800 us
        ({"later": 900 * US}, 300),  # launched after the event was recorded
        ({"other": 978 * US}, 300),  # another stream, though it ends as `b` starts
    ],
)
def test_work_waits_for_what_its_stream_was_told_to_wait_for(longer: dict[str, int], expected: int) -> None:
    run = told(StreamWait(stream=7, waited_stream=20, record=RECORD))
    assert starts(*run)[0, "b"] == 300 * US
    assert starts(*run, longer)[0, "b"] == expected * US


@pytest.mark.parametrize(
    "wait",
    [
        StreamWait(stream=7, waited_stream=20, record=49),  # the event was recorded before the capture
        StreamWait(stream=7, waited_stream=9, record=RECORD),  # nothing ran there
        StreamWait(stream=7, waited_stream=24, record=RECORD),  # nothing had been launched there by then
        StreamWait(stream=20, waited_stream=7, record=RECORD),  # nothing more is launched on stream 20
    ],
)
def test_waits_for_nothing_known_hold_nothing_up(wait: StreamWait) -> None:
    assert starts(*told(wait), {"a": 784 * US, "other": 978 * US})[0, "b"] == 300 * US
