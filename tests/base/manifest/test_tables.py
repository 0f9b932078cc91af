"""Tables and shards as a run manifest describes them; what cannot be is not described."""

import pytest

from traceinsight.base.manifest.tables import described_tables, planned_shards


@pytest.mark.parametrize("count", [10**400, 2**53 + 1, -1, 0, True, 1.5, "8", None])
@pytest.mark.parametrize("field", ["rows", "dim"])
def test_a_table_of_a_size_that_cannot_be_is_not_described(field: str, count: object) -> None:
    table = {"name": "user", "rows": 100, "dim": 8, "mean_ids": 2.0}
    assert [one.rows * one.dim for one in described_tables({"tables": [table]}) or ()] == [800]
    assert described_tables({"tables": [table | {field: count}]}) is None


def test_one_table_that_is_malformed_costs_the_others_but_no_tables_are_none() -> None:
    assert described_tables({}) == []
    assert described_tables({"tables": [{"rows": 1, "dim": 8}, {"rows": 1}]}) is None


def test_only_whole_tables_and_columns_can_move() -> None:
    piece = {"rank": 2, "rows": [10, 110], "columns": [8, 24]}
    kinds = ("table_wise", "column_wise", "row_wise", "data_parallel", None)
    plan = {str(kind): {"sharding_type": kind, "shards": [piece]} for kind in kinds}
    shards, malformed = planned_shards({"sharding_plan": plan})
    assert [(one.table, one.movable) for one in shards] == [
        ("table_wise", True),
        ("column_wise", True),
        ("row_wise", False),
        ("data_parallel", False),
        ("None", True),
    ]
    assert {(one.rank, one.row_count, one.dim) for one in shards} == {(2, 100, 16)}
    assert malformed == 0
