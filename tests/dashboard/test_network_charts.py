"""The matrix of bytes and the comparison with datasheets, with numbers worked out by hand."""

from typing import Any

import pytest
from msgspec.structs import replace

from tests.report.diagnoses import HOSTILE_NAME, collective, late_rank
from traceinsight.diagnosis import AllToAllMatrix, Diagnosis, GroupLink

from dashboard.charts.links import against_datasheet, datasheet_rows, not_compared  # isort: skip
from dashboard.charts.matrix import TOTAL, matrix_chart, matrix_named, matrix_names, matrix_rows  # isort: skip
from dashboard.theme import LIGHT  # isort: skip

MB = 1_000_000


def with_matrices() -> Diagnosis:
    """Two kinds: ranks 0 and 1 exchange in both, rank 2 takes part in the second only."""
    ids = AllToAllMatrix(
        label="ids", phase="input", ranks=[0, 1], sent_bytes=[[1 * MB, 2 * MB], [3 * MB, None]]
    )
    vectors = AllToAllMatrix(
        label=HOSTILE_NAME, phase="forward", ranks=[0, 1, 2],
        sent_bytes=[[10 * MB, 20 * MB, 30 * MB], [0, 0, 0], [4 * MB, 5 * MB, 6 * MB]],
    )  # fmt: skip
    return replace(late_rank(), all_to_all_matrix=[ids, vectors])


def group_link(**changes: Any) -> GroupLink:
    fields: dict[str, Any] = {
        "group": "default_pg", "ranks": list(range(8)), "nodes": 1, "link": "links of A100",
        "all_to_all_gbps": 300.0, "ring_gbps": 300.0, "reason": None,
    }  # fmt: skip
    return GroupLink(**(fields | changes))


def test_all_kinds_together_are_their_sum_and_unknown_stays_unknown() -> None:
    whole = matrix_named(with_matrices(), TOTAL)
    assert whole.ranks == [0, 1, 2]
    assert whole.cells == [[11 * MB, 22 * MB, 30 * MB], [3 * MB, None, 0], [4 * MB, 5 * MB, 6 * MB]]


def test_one_kind_is_chosen_by_its_number() -> None:
    assert list(matrix_names(with_matrices())) == ["1", "2"]
    assert matrix_named(with_matrices(), "1").cells == [[1 * MB, 2 * MB], [3 * MB, None]]


def test_the_heat_map_is_in_megabytes_with_gaps_where_nothing_is_known() -> None:
    drawing = matrix_chart(matrix_named(with_matrices(), "1"), LIGHT)
    assert drawing is not None
    (heat,) = drawing.data
    assert [list(row) for row in heat.z] == [[1, 2], [3, None]]
    assert [list(row) for row in heat.text] == [["1", "2"], ["3", ""]]
    assert heat.customdata[0][1] == "2.00 MB"
    assert (heat.zmin, heat.zmax) == (0, 3)


def test_the_table_has_a_row_per_pair() -> None:
    rows = matrix_rows(matrix_named(with_matrices(), "1"))
    assert rows[1] == {"from": 0, "to": 1, "sent": 2.0}
    assert rows[3]["sent"] is None


def test_nothing_sent_draws_nothing() -> None:
    zero = AllToAllMatrix(label=None, phase="other", ranks=[0, 1], sent_bytes=[[0, 0], [None, 0]])
    assert matrix_chart(matrix_named(replace(late_rank(), all_to_all_matrix=[zero]), TOTAL), LIGHT) is None


def test_bandwidth_is_a_share_of_what_the_link_allows() -> None:
    some = [collective(bus_gbps=30.0), collective(bus_gbps=90.0), collective(bus_gbps=60.0)]
    others = [collective(bus_gbps=None), collective(bus_gbps=5.0, step=99)]  # unknown; no steady step
    diagnosis = replace(late_rank(), collectives=[*some, *others], links=[group_link()])
    (row,) = datasheet_rows(diagnosis)
    assert (row["bus"], row["limit"], row["share"]) == (60, 300, pytest.approx(20))
    drawing = against_datasheet(diagnosis, LIGHT)
    assert drawing is not None
    assert list(drawing.data[0].x) == pytest.approx([20])
    assert drawing.data[0].y[0].endswith("<br>60.0 GB/s of 300 GB/s")


def test_rings_and_exchanges_have_limits_of_their_own() -> None:
    some = [collective(op="all_to_all", label="a"), collective(op="all_reduce", label="r")]
    link = group_link(all_to_all_gbps=75.0, ring_gbps=50.0)
    rows = datasheet_rows(replace(late_rank(), collectives=some, links=[link]))
    assert {row["kind"]: row["limit"] for row in rows} == {"a": 75, "r": 50}


def test_what_is_not_known_is_said_and_not_drawn() -> None:
    link = group_link(link=None, nodes=None, all_to_all_gbps=None, ring_gbps=None,
                      reason="which ranks share a node was not recorded")  # fmt: skip
    diagnosis = replace(late_rank(), links=[link])
    assert against_datasheet(diagnosis, LIGHT) is None
    (sentence,) = not_compared(diagnosis)
    assert sentence.startswith("Group of ranks 0-7: which ranks share a node was not recorded. Put run.json")
    assert not_compared(replace(diagnosis, links=[group_link()])) == []


def test_a_matrix_of_another_shape_than_its_ranks_is_left_out() -> None:
    odd = AllToAllMatrix(label=None, phase="other", ranks=[0, 1], sent_bytes=[[1.0, 2.0]])
    assert matrix_names(replace(late_rank(), all_to_all_matrix=[odd])) == {}
