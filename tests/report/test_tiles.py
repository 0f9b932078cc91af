"""The numbers above a report: what they are of, and that missing ones are left out."""

import msgspec

from tests.report.diagnoses import late_rank, nothing_measured, partition_row
from traceinsight.diagnosis import Interval, RoadmapEntry
from traceinsight.report.tiles import Tile, tiles


def test_step_compute_and_communication_are_medians_over_ranks_and_steps() -> None:
    # Windows of 200, 200 and 400 ms, each with 100 ms of compute.
    rows = [partition_row(0, 10), partition_row(1, 10), partition_row(0, 11, window_ms=400)]
    step, computing, exposed, *_ = tiles(msgspec.structs.replace(late_rank(), partition=rows))
    shares = sorted(row.exposed_comm_ns / row.window_ns for row in rows)
    assert (step.label, step.value) == ("Step", "200 ms")
    assert (computing.label, computing.value) == ("Computing", f"{rows[0].compute_ns / 200e6:.1%}")
    assert (exposed.label, exposed.value) == ("Exposed communication", f"{shares[1]:.1%}")


def test_without_a_measured_step_there_are_none() -> None:
    assert tiles(nothing_measured()) == []


def _entry(rule: str, in_all: float | None) -> RoadmapEntry:
    return RoadmapEntry(
        rule=rule,
        cumulative_speedup=None if in_all is None else Interval(low=in_all, expected=in_all, high=in_all),
    )


def test_the_whole_roadmap_is_what_its_last_predicted_change_reaches() -> None:
    entries = [_entry("straggler", 1.25), _entry("host-bound", 1.5), _entry("exposed-all-to-all", None)]
    last = tiles(msgspec.structs.replace(late_rank(), roadmap=entries))[-1]
    assert last == Tile("Whole roadmap", "1.50x", "as fast with all 2 changes, predicted by replay")


def test_one_predicted_change_is_no_second_tile() -> None:
    labels = [
        one.label for one in tiles(msgspec.structs.replace(late_rank(), roadmap=[_entry("straggler", 1.25)]))
    ]
    assert labels == ["Step", "Computing", "Exposed communication", "First remedy"]
