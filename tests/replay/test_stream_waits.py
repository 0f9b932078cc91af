"""What work waits for that is announced to wait: two streams beside its own, in two steps of one program."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.replay.jobs import assembled
from tests.trace.recordings import MS, US, call, kernel, launched, recording, step
from traceinsight.replay.stream_waits import Queued, queued, stream_waits
from traceinsight.trace.recording import MISSING, EventKind

LATENCY = 4 * US
PERIOD = 1 * MS
OWN, EXCHANGE, BUCKETS = 7, 20, 24


class Work:
    """Launched ``at`` us after the step began, runs on ``lane`` from ``begin`` to ``end``."""

    def __init__(self, name: str, lane: int, at: float, begin: float, end: float, **told: Any) -> None:
        self.name, self.lane, self.at, self.begin, self.end = name, lane, at, begin, end
        self.waits, self.ahead, self.communicates = 0, False, lane != OWN
        for key, value in told.items():
            setattr(self, key, value)


def waits_of(*steps: Sequence[Work]) -> set[tuple[str, str]]:
    """(source, target) as name and number of the step."""
    all_work = [(number, one) for number, step in enumerate(steps) for one in step]
    all_work.sort(key=lambda pair: pair[0] * PERIOD + pair[1].begin * US)
    names = sorted({one.name for _, one in all_work})
    free: dict[int, float] = {}
    columns: dict[str, list[float]] = {
        name: [] for name in ("lane", "launch", "begin", "end", "free", "place")
    }
    for number, one in all_work:
        moments = {"launch": one.at, "begin": one.begin, "end": one.end}
        for name, moment in moments.items():
            columns[name].append(number * PERIOD + moment * US)
        columns["lane"].append(one.lane)
        columns["free"].append(free.get(one.lane, -PERIOD))
        columns["place"].append(names.index(one.name))
        free[one.lane] = number * PERIOD + one.end * US
    array = {name: np.array(column, dtype=np.int64) for name, column in columns.items()}
    work = Queued(
        array["lane"], array["launch"], array["begin"], array["end"], array["free"],
        np.array([one.waits for _, one in all_work]), array["place"],
        np.array([one.ahead for _, one in all_work]), np.array([one.communicates for _, one in all_work]),
        np.zeros(len(all_work), dtype=np.bool_),
    )  # fmt: skip
    named = [f"{one.name}{number}" for number, one in all_work]
    return {
        (named[a], named[b])
        for a, b in zip(*(side.tolist() for side in stream_waits(work, LATENCY)), strict=True)
    }


def exchange(end: float) -> Work:
    return Work("exchange", EXCHANGE, 10, 20, end)


def bucket(end: float) -> Work:
    return Work("bucket", BUCKETS, 12, 20, end)


def update(begin: float, **told: Any) -> Work:
    """Launched at 50 us, so that nothing but another stream explains a start after 54 us."""
    return Work("update", OWN, 50, begin, begin + 10, **({"waits": 1} | told))


def test_one_wait_is_for_the_stream_whose_end_it_was_held_to() -> None:
    """In step 0 the update starts as the exchange ends; in step 1 both were done when it was launched."""
    found = waits_of(
        [exchange(300), bucket(100), update(300)], [exchange(40), bucket(30), update(54)]
    )  # fmt: skip
    assert found == {("exchange0", "update0"), ("exchange1", "update1")}


def test_a_wait_that_held_nothing_up_is_for_every_stream() -> None:
    steps = [exchange(40), bucket(30), update(54)]
    assert waits_of(steps) == {("exchange0", "update0"), ("bucket0", "update0")}


def test_work_right_behind_its_own_stream_says_nothing_of_others() -> None:
    """The update starts at 300 us behind its own stream's work, and by chance as the exchange ends."""
    before = Work("before", OWN, 20, 24, 300)
    found = waits_of([exchange(300), bucket(100), before, update(300)])
    assert found == {("exchange0", "update0"), ("bucket0", "update0")}


def test_work_that_still_ran_in_one_step_is_waited_for_in_none() -> None:
    """The second bucket outlasts the update's start in step 1: the first is what may be waited for."""

    def buckets(end: float) -> list[Work]:
        return [bucket(30), Work("later", BUCKETS, 14, 32, end)]

    found = waits_of([*buckets(40), update(54)], [*buckets(90), update(54)])
    assert found == {("bucket0", "update0"), ("bucket1", "update1")}


@pytest.mark.parametrize(
    ("waits", "expected"),
    [(2, {"exchange", "bucket"}), (1, {"exchange"})],
)
def test_no_more_streams_are_waited_for_than_waits_are_announced(waits: int, expected: set[str]) -> None:
    """Held to the exchange in steps 0 and 1, to the bucket in step 2."""
    late_exchange = [exchange(300), bucket(100), update(300, waits=waits)]
    late_bucket = [exchange(100), bucket(300), update(300, waits=waits)]
    found = waits_of(late_exchange, late_exchange, late_bucket)
    assert {source for source, _ in found} == {f"{name}{number}" for name in expected for number in range(3)}


def test_a_collective_waits_for_no_stream_of_collectives() -> None:
    own = Work("own", OWN, 14, 20, 40)
    gradients = Work("gradients", EXCHANGE, 50, 54, 80, waits=1)
    assert waits_of([bucket(30), own, gradients]) == {("own0", "gradients0")}


def test_what_fetches_the_next_batch_does_not_wait_for_this_ones_compute() -> None:
    """Unless it was seen held to it."""
    own = Work("own", OWN, 14, 20, 40)
    batch = Work("batch", 22, 5, 20, 30, ahead=True, communicates=False)

    def sort(begin: float) -> Work:
        return Work("sort", 21, 50, begin, begin + 5, waits=1, ahead=True, communicates=False)

    assert waits_of([batch, own, sort(54)]) == {("batch0", "sort0")}
    assert waits_of([batch, Work("own", OWN, 14, 20, 200), sort(200)]) == {("own0", "sort0")}


def test_waits_are_counted_from_launch_to_launch_and_places_from_step_to_step() -> None:
    """Two calls before `a`, one before `b`; `a` from before the recording has no place in step 0."""
    rows: list[Any] = [kernel("a", -20 * US, 5 * US, 99)]
    for at in (0, 1):
        begin = at * MS
        rows += [
            step(at, begin, begin + MS),
            call("cudaStreamWaitEvent", begin + 10 * US, begin + 11 * US),
            call("cudaStreamWaitEvent", begin + 12 * US, begin + 13 * US),
            launched(kernel("a", begin + 24 * US, begin + 30 * US, 4 * at + 1), begin + 20 * US),
            call("cudaStreamWaitEvent", begin + 32 * US, begin + 33 * US),
            launched(kernel("b", begin + 44 * US, begin + 50 * US, 4 * at + 2), begin + 40 * US),
            launched(kernel("a", begin + 54 * US, begin + 60 * US, 4 * at + 3), begin + 50 * US),
        ]
    trace_set, _ = assembled(recording(*rows, backend="nccl", world_size=1))
    (trace,) = trace_set.ranks
    gpu = trace.recording.of_kind(EventKind.KERNEL)
    runtime = trace.recording.of_kind(EventKind.RUNTIME)
    waits = trace.recording.named(runtime, lambda name: "Wait" in name)
    work = queued(trace, gpu, runtime[~np.isin(runtime, waits)], waits)
    assert work.announced.tolist() == [0, 2, 1, 0, 2, 1, 0]
    assert work.launch_ns[0] == MISSING
    assert work.place[1:4].tolist() == work.place[4:7].tolist()
    assert len(set(work.place[1:4].tolist())) == 3
    assert work.place[0] not in work.place[1:]
