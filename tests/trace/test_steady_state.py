"""Which steps stand for the job: both sides of every threshold."""

import pytest

from tests.trace.recordings import GEMM, MS, call, kernel, launched, recording, step
from traceinsight.trace.assemble import derive_rank
from traceinsight.trace.rank_trace import RankTrace
from traceinsight.trace.recording import Recording
from traceinsight.trace.steady_state import steady_steps


def cpu_steps(*lengths_ms: float, first: int = 10) -> Recording:
    """A rank without a GPU, with steps of these lengths."""
    rows, begin = [], 0
    for at, length in enumerate(lengths_ms):
        end = begin + round(length * MS)
        rows.append(step(first + at, begin, end))
        begin = end
    return recording(rows)


def trace(one: Recording, rank: int = 0) -> RankTrace:
    return derive_rank(one, rank)


@pytest.mark.parametrize(
    ("lengths_ms", "dropped"),
    [
        ([10, 10, 20, 10, 10], []),  # exactly twice the median of 10 stays
        ([10, 10, 20.1, 10, 10], [12]),
        ([10, 10, 10, 10, 20.1], [14]),
        ([20.1, 10, 10, 10, 10], [10]),
        ([15, 10, 10, 10, 10], []),  # first step: exactly 1.5 times the later ones' median stays
        ([15.1, 10, 10, 10, 10], [10]),
        ([10, 15.1, 10, 10, 10], []),  # only the first has the lower threshold
        ([10, 30, 10, 30, 10, 10], [11, 13]),
        ([30], []),  # nothing to compare with
        ([5, 10, 10, 10], []),  # short is no outlier
    ],
)
def test_outlier_steps_are_dropped_wherever_they_stand(lengths_ms: list[float], dropped: list[int]) -> None:
    steps, drops, notes = steady_steps([trace(cpu_steps(*lengths_ms))])
    assert [drop.step for drop in drops] == dropped
    assert set(steps) | set(dropped) == {10 + at for at in range(len(lengths_ms))}
    assert not set(steps) & set(dropped)
    assert notes == ()


def test_a_step_is_as_long_as_on_its_slowest_rank() -> None:
    fast, slow = cpu_steps(10, 10, 10, 10), cpu_steps(10, 10, 25, 10)
    steps, drops, _ = steady_steps([trace(fast, 0), trace(slow, 1)])
    assert [drop.step for drop in drops] == [12]
    assert "25 ms" in drops[0].reason
    assert steps == (10, 11, 13)


def lossy(lost: dict[int, int], launches: int = 20, steps: int = 3) -> RankTrace:
    """Each step launches so many kernels, of which ``lost[step]`` have no GPU event."""
    rows = []
    for number in range(steps):
        begin = number * 10 * MS
        rows.append(step(number, begin, begin + 10 * MS))
        for at in range(launches):
            correlation, moment = 1000 * number + at + 1, begin + at * 1000
            work = kernel(GEMM, moment + 5000, moment + 5500, correlation)
            rows += launched(work, moment)[: 1 if at >= launches - lost.get(number, 0) else 2]
    return trace(recording(rows))


@pytest.mark.parametrize(("launches", "lost", "dropped"), [(20, 0, []), (21, 1, []), (19, 1, [1])])
def test_steps_with_lost_kernels_are_dropped_above_five_percent(
    launches: int, lost: int, dropped: list[int]
) -> None:
    # 1 of 21 launches is 4.8 %: stays. 1 of 19 is 5.3 %: dropped.
    _, drops, _ = steady_steps([lossy({1: lost}, launches)])
    assert [drop.step for drop in drops] == dropped


def test_the_worst_rank_decides() -> None:
    _, drops, _ = steady_steps([lossy({}), lossy({2: 10})])
    assert [(drop.step, drop.reason[:3]) for drop in drops] == [(2, "50%")]


def test_when_no_step_is_clean_all_stay_and_a_note_says_so() -> None:
    steps, drops, notes = steady_steps([lossy({0: 5, 1: 5, 2: 5})])
    assert (steps, drops) == ((0, 1, 2), ())
    assert [note.code for note in notes] == ["no-clean-step"]


def test_an_outlier_does_not_come_back_when_no_step_is_clean() -> None:
    # Step 1 takes 30 ms instead of 10, and every step lost a quarter of its kernels.
    rows: list[object] = []
    for number, (begin, end) in enumerate([(0, 10), (10, 40), (40, 50), (50, 60)]):
        rows.append(step(number, begin * MS, end * MS))
        for at in range(4):
            work = kernel(GEMM, begin * MS + at * 1000, begin * MS + at * 1000 + 500, 10 * number + at + 1)
            rows += launched(work, begin * MS + at * 1000)[: 1 if at == 3 else 2]
    steps, drops, notes = steady_steps([trace(recording(rows))])
    assert steps == (0, 2, 3)
    assert [drop.step for drop in drops] == [1]
    assert [note.code for note in notes] == ["no-clean-step"]


def test_calls_that_launch_no_kernel_cannot_lose_one() -> None:
    rows = [call("cudaEventRecord", at, at + 10) for at in range(0, 1000, 100)]
    one = recording(step(0, 0, MS), step(1, MS, 2 * MS), rows, launched(kernel(GEMM, 50, 60, 1), 0))
    _, drops, _ = steady_steps([trace(one)])
    assert drops == ()
