"""A loader with its own processes goes on while the job is held up: waits for it shrink by as much."""

from typing import Any

import pytest

from tests.replay.jobs import assembled, starts
from tests.trace.recordings import MS, US, call, kernel, launched, mark, recording, step
from traceinsight.replay.edits.registry import parse_edit
from traceinsight.replay.facts import Facts
from traceinsight.replay.loader import HANDED_OVER_NS

PARALLEL = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
SERIAL = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
PERIOD = 10 * MS
LAUNCH = 4 * US


def steps(loader: str, count: int = 5) -> Any:
    """Every 10 ms a batch; the step fetches it, launches 2 ms of work 1 ms later and waits for its end.

    From the end of a step's work to the fetch: 7 us.
    """
    rows: list[Any] = []
    end = 7 * MS
    for at in range(count):
        fetched = (at + 1) * PERIOD
        launch = fetched + 1 * MS
        rows += [
            mark(loader, end + 7 * US, fetched),
            launched(kernel(f"k{at}", launch + LAUNCH, launch + LAUNCH + 2 * MS, at + 1), launch),
            call("cudaStreamSynchronize", launch + 10 * US, launch + LAUNCH + 2 * MS + 2 * US, 100 + at),
        ]
        end = launch + LAUNCH + 2 * MS
    return assembled(recording(step(0, 0, end + 1 * MS), *rows, backend="nccl", world_size=1))


def test_unedited_steps_start_as_measured() -> None:
    found = starts(*steps(PARALLEL))
    for at in range(5):
        assert found[0, f"k{at}"] == (at + 1) * PERIOD + 1 * MS + LAUNCH


def test_what_holds_up_one_step_is_made_up_for_by_the_waits_after_it() -> None:
    """The first step's work takes 8 ms instead of 2: it ends at 19 ms, and the next batch is ready at 20."""
    found = starts(*steps(PARALLEL), {"k0": 8 * MS})
    assert found[0, "k1"] == 2 * PERIOD + 1 * MS + LAUNCH


def test_a_batch_that_is_ready_is_handed_over_at_once() -> None:
    """The first step's work takes 12 ms: it ends at 23.004 ms, when the second batch is 3 ms old."""
    found = starts(*steps(PARALLEL), {"k0": 12 * MS})
    end = PERIOD + 1 * MS + LAUNCH + 12 * MS
    assert found[0, "k1"] == end + 7 * US + HANDED_OVER_NS + 1 * MS + LAUNCH
    assert found[0, "k2"] == 3 * PERIOD + 1 * MS + LAUNCH


def test_the_loader_stops_when_two_batches_are_ready() -> None:
    """The first step's work takes 62 ms, to 73.004 ms: 1 and 2 are ready, 3 is begun when 1 is taken."""
    found = starts(*steps(PARALLEL), {"k0": 62 * MS})
    taken = PERIOD + 1 * MS + LAUNCH + 62 * MS + 7 * US + HANDED_OVER_NS
    assert found[0, "k1"] == taken + 1 * MS + LAUNCH
    assert found[0, "k3"] == taken + PERIOD + 1 * MS + LAUNCH
    assert found[0, "k4"] == taken + 2 * PERIOD + 1 * MS + LAUNCH


def test_a_loader_without_processes_works_in_the_call() -> None:
    """All of the 6 ms that the first step takes longer delays the second."""
    found = starts(*steps(SERIAL), {"k0": 8 * MS})
    assert found[0, "k1"] == 2 * PERIOD + 6 * MS + 1 * MS + LAUNCH


@pytest.mark.parametrize("loader", [PARALLEL, SERIAL])
def test_no_input_wait_starts_a_step_when_the_one_before_is_done(loader: str) -> None:
    """7 us from the end of the work to the next fetch, none for that, and 1 ms to the launch."""
    trace_set, graph = steps(loader)
    edited = parse_edit("no-input-wait").apply(graph, Facts(trace_set, graph))
    found = starts(trace_set, edited)
    for at in range(1, 5):
        assert found[0, f"k{at}"] - found[0, f"k{at - 1}"] == pytest.approx(
            2 * MS + 7 * US + 1 * MS + LAUNCH, abs=1
        )
