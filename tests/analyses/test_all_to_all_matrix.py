"""Bytes from rank to rank: units, sides, groups, and what is not known."""

from typing import Any

import pytest

from tests.builders import ELEMENT_BYTES, POOLED_A2A, JobBuilder
from tests.replay.jobs import load
from tests.trace.recordings import MS, US, kernel, launched, recording, step
from traceinsight.analyses.all_to_all_matrix import MOST_RANKS, all_to_all_matrix
from traceinsight.diagnosis import AllToAllMatrix
from traceinsight.trace.assemble import assemble
from traceinsight.trace.recording import CommArgs

SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"


def exchange(args: dict[int, dict[str, Any]], *, world_size: int | None = None) -> list[AllToAllMatrix]:
    """One all-to-all in one step; floats unless told otherwise."""
    recordings = []
    for rank, own in args.items():
        fields: dict[str, Any] = {"collective": "all_to_allv", "dtype": "Float"} | own
        piece = kernel(SEND_RECV, 1000 * US, 1100 * US, 1, stream=20, args=CommArgs(**fields))
        recordings.append(
            recording(step(0, 0, 2 * MS), launched(piece, 10 * US), rank=rank, world_size=world_size)
        )
    return all_to_all_matrix(assemble(recordings))


def test_splits_in_elements_become_bytes() -> None:
    (one,) = exchange({
        0: {"in_elements": 40, "in_split": (10, 30), "out_elements": 15, "out_split": (10, 5)},
        1: {"in_elements": 12, "in_split": (5, 7), "out_elements": 37, "out_split": (30, 7)},
    })  # fmt: skip
    assert one.ranks == [0, 1]
    assert one.sent_bytes == [[40, 120], [20, 28]]


def test_splits_in_rows_of_a_wider_tensor_become_bytes_too() -> None:
    """[4, 8] half floats: 32 elements in 4 rows of 16 bytes, of which 1 stays and 3 leave."""
    (one,) = exchange({
        0: {"in_elements": 32, "in_split": (1, 3), "dtype": "Half"},
        1: {"in_elements": 0, "in_split": (0, 0), "dtype": "Half"},
    })  # fmt: skip
    assert one.sent_bytes == [[16, 48], [0, 0]]


def test_where_a_sender_says_nothing_the_receivers_do() -> None:
    (one,) = exchange({
        0: {"in_elements": 40, "in_split": (10, 30), "out_elements": 15, "out_split": (10, 5)},
        1: {"out_elements": 37, "out_split": (30, 7)},
    })  # fmt: skip
    assert one.sent_bytes == [[40, 120], [20, 28]]


def test_what_neither_side_says_is_none() -> None:
    args: dict[str, Any] = {"group_ranks": (0, 1, 2)}
    (one,) = exchange(
        {0: args | {"in_elements": 6, "in_split": (1, 2, 3), "out_elements": 9, "out_split": (1, 4, 4)}}
    )
    assert one.ranks == [0, 1, 2]
    assert one.sent_bytes == [[4, 8, 12], [16, None, None], [16, None, None]]


@pytest.mark.parametrize(
    "args",
    [
        {"in_elements": 40},  # no split
        {"in_split": (10, 30)},  # no size
        {"in_elements": 41, "in_split": (10, 30)},  # no whole row
        {"in_elements": 40, "in_split": (10, 20, 10)},  # of another group
        {"in_elements": 40, "in_split": (0, 0)},
    ],
)
def test_splits_that_fit_no_buffer_are_not_used(args: dict[str, Any]) -> None:
    assert exchange({0: args, 1: args}) == []


def test_groups_that_never_meet_send_each_other_nothing() -> None:
    args = {
        rank: {"group_ranks": group, "in_elements": 4, "in_split": (1, 3)}
        for group in ((0, 2), (1, 3))
        for rank in group
    }
    (one,) = exchange(args, world_size=4)
    assert one.sent_bytes == [[4, 0, 12, 0], [0, 4, 0, 12], [4, 0, 12, 0], [0, 4, 0, 12]]


def test_a_group_too_large_is_left_out() -> None:
    members = tuple(range(MOST_RANKS + 1))
    args = {"group_ranks": members, "in_elements": len(members), "in_split": (1,) * len(members)}
    assert exchange({0: args}) == []


def test_kinds_of_a_job_stay_apart_and_count_per_step() -> None:
    """Three even ranks: each sends a third of its elements to each, whatever the number of steps."""
    found = all_to_all_matrix(load(JobBuilder(world_size=3, steps=5).build()))
    assert {one.phase for one in found} == {"sparse_data_dist", "forward", "backward"}
    (pooled,) = [one for one in found if one.phase == "forward"]
    assert pooled.label == POOLED_A2A.label
    share = POOLED_A2A.elements // 3 * ELEMENT_BYTES["Float"]
    for row in pooled.sent_bytes:
        assert row == pytest.approx([share] * 3, abs=4)  # one element is left over
        assert sum(cell for cell in row if cell is not None) == POOLED_A2A.elements * 4
