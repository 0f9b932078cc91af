"""Rows of a timeline against the job they came from, and what is left of them in a window."""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.builders import MS, US, JobBuilder, Late
from tests.replay.jobs import load
from traceinsight.engine.timeline import CATEGORIES, Row, Timeline, timeline_of, view
from traceinsight.engine.timeline.rows import disjoint

LATE_NS = 2 * MS
AHEAD_NS = 5 * MS
JOB = JobBuilder(world_size=2, late=(Late(rank=1, ns=LATE_NS),), clock_ahead_ns={1: AHEAD_NS}).build()
COMPUTE, COPY = CATEGORIES.index("compute"), CATEGORIES.index("copy")


@pytest.fixture(scope="module")
def timeline() -> Timeline:
    return timeline_of(load(JOB))


def row(timeline: Timeline, rank: int, title: str) -> Row:
    (found,) = [one for one in timeline.rows if (one.rank, one.title) == (rank, title)]
    return found


def of(*pieces: tuple[int, int, int], **changes: Any) -> Timeline:
    """One row of (start, end, category); each piece has its own name."""
    columns = np.array(pieces, dtype=np.int64).reshape(-1, 3)
    one = Row(
        0, "compute", columns[:, 0], columns[:, 1], columns[:, 2].astype(np.int8), np.arange(len(columns))
    )
    return Timeline(0, 1000, tuple(map(str, range(len(columns)))), (one,), (), None, None)


def drawn(timeline: Timeline, start: int, end: int, columns: int) -> list[tuple[int, int, int, int, int]]:
    """(start, end, name, count, busy)."""
    (one,) = view(timeline, start, end, ranks=[0], columns=columns).rows
    table = (one.start_ns, one.end_ns, one.name, one.count, one.busy_ns)
    return list(zip(*(column.tolist() for column in table), strict=True))


def test_every_rank_has_its_rows_and_compute_is_as_long_as_it_was(timeline: Timeline) -> None:
    assert [(one.rank, one.title) for one in timeline.rows] == [
        (rank, title) for rank in (0, 1) for title in ("host", "compute", "communication", "copy")
    ]
    truth = sum(work.end - work.start for work in JOB.device[0] if work.kind == "compute")
    compute = row(timeline, 0, "compute")
    assert (compute.end_ns - compute.start_ns).sum() == pytest.approx(truth, rel=1e-6)


def test_waiting_for_the_late_rank_is_as_long_as_it_was(timeline: Timeline) -> None:
    comm = row(timeline, 0, "communication")
    waits = (comm.end_ns - comm.start_ns)[comm.category == CATEGORIES.index("wait")]
    long = waits[waits > MS]
    truth = [one.wait(0) for one in JOB.collectives if one.wait(0) > MS]
    assert len(truth) > 0
    assert sorted(long.tolist()) == pytest.approx(sorted(truth), abs=20 * US)


def test_clocks_are_aligned(timeline: Timeline) -> None:
    ends = [row(timeline, rank, "communication").end_ns[-1] for rank in (0, 1)]
    assert abs(int(ends[0]) - int(ends[1])) < AHEAD_NS / 100
    begin, end = timeline.step_ns(JOB.steps[1]) or (0, 0)
    assert end - begin < 2 * max(
        JOB.window(rank, JOB.steps[1])[1] - JOB.window(rank, JOB.steps[1])[0] for rank in (0, 1)
    )
    assert timeline.step_ns(10_000) is None


def test_the_critical_path_runs_through_the_late_rank(timeline: Timeline) -> None:
    path = timeline.critical_path
    assert path is not None
    assert timeline.no_path_because is None
    lengths = path.end_ns - path.start_ns
    assert lengths[path.ranks == 1].sum() > 0.9 * lengths.sum()
    assert CATEGORIES.index("wait") not in path.category


def test_without_marked_steps_the_reason_is_given() -> None:
    found = timeline_of(load(JobBuilder(world_size=2, profiler_step=False).build()))
    assert found.critical_path is None
    assert found.no_path_because == "no step is marked (ProfilerStep#)"


def test_of_two_pieces_at_once_the_one_that_began_first_shows() -> None:
    # 0-50 hides 10-30 altogether and 40-70 up to 50
    start, end, kept = disjoint(np.array([0, 10, 40, 90]), np.array([50, 30, 70, 90]))
    assert (start.tolist(), end.tolist(), kept.tolist()) == ([0, 50], [50, 70], [0, 2])


def test_wide_pieces_stay_alone_and_narrow_ones_become_one() -> None:
    # 10 columns of 100 ns: 0-150 is wide; 200-210, 220-260 and 290-300 share a column
    found = drawn(
        of((0, 150, COMPUTE), (200, 210, COMPUTE), (220, 260, COMPUTE), (290, 300, COMPUTE)), 0, 1000, 10
    )
    assert found == [(0, 150, 0, 1, 150), (200, 300, 2, 3, 60)]


def test_zooming_in_tells_them_apart_again() -> None:
    pieces = ((200, 210, COMPUTE), (220, 260, COMPUTE), (290, 300, COMPUTE))
    assert drawn(of(*pieces), 205, 255, 50) == [(205, 210, 0, 1, 5), (220, 255, 1, 1, 35)]


def test_narrow_pieces_of_different_kinds_stay_apart_across_columns() -> None:
    # 10 columns of 100 ns; 110-150 and 210-250 are of one kind and 60 apart, 310-350 is of another
    found = drawn(of((110, 150, COMPUTE), (210, 250, COMPUTE), (310, 350, COPY)), 0, 1000, 10)
    assert [(start, end, count) for start, end, _, count, _ in found] == [(110, 250, 2), (310, 350, 1)]


def test_a_window_without_anything_is_empty_and_an_empty_window_is_refused() -> None:
    assert drawn(of((0, 10, COMPUTE)), 500, 600, 10) == []
    with pytest.raises(ValueError, match="no window"):
        view(of((0, 10, COMPUTE)), 5, 5, ranks=[0], columns=10)


@given(
    lengths=st.lists(
        st.tuples(st.integers(0, 30), st.integers(1, 60), st.sampled_from([COMPUTE, COPY])), max_size=300
    ),
    columns=st.integers(1, 20),
)
def test_a_row_never_holds_more_than_two_pieces_per_column_and_loses_no_time(
    lengths: list[tuple[int, int, int]], columns: int
) -> None:
    pieces, at = [], 0
    for gap, length, category in lengths:
        pieces.append((at + gap, at + gap + length, category))
        at += gap + length
    found = drawn(of(*pieces), 0, at + 1, columns)
    assert len(found) <= 2 * columns + 1
    assert sum(busy for *_, busy in found) == sum(length for _, length, _ in lengths)
    assert sum(count for *_, count, _ in found) == len(lengths)
    assert all(one[1] <= other[0] for one, other in pairwise(found))
