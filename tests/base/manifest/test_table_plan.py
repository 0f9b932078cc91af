"""The shards a run manifest names, and what is left of a malformed or hostile one."""

from typing import Any

import pytest

from traceinsight.base.manifest.decode import MAX_TABLE_NAME
from traceinsight.base.manifest.table_plan import TablePlan, TableShard, table_plan


def shard(rank: int, rows: list[Any], columns: list[Any]) -> dict[str, Any]:
    return {"rank": rank, "rows": rows, "columns": columns}


def plan_of(**tables: list[dict[str, Any]]) -> dict[str, Any]:
    return {name: {"sharding_type": "any", "shards": shards} for name, shards in tables.items()}


COUNTS = {"ids_per_step": 10.0, "read_bytes_per_step": 640.0, "returned_bytes_per_step": 64.0}


def test_plan_counts_and_estimates_are_joined_by_table_and_rank() -> None:
    manifest = {
        "sharding_plan": plan_of(a=[shard(1, [0, 100], [0, 16])]),
        "measured_tables": {"steps": 5, "missing_ranks": [3], "tables": {"a": {"1": COUNTS}}},
        # 1 + 2 ms, and one part that the planner did not estimate.
        "planner_estimates": {
            "a": [{"rank": 1, "fwd_compute_ms": 1.0, "bwd_comms_ms": 2, "prefetch_compute_ms": None}]
        },
    }
    expected = TableShard("a", 1, 100, 16, 10.0, 640.0, 64.0, 3.0)
    assert table_plan(manifest) == TablePlan((expected,), frozenset({3}), 0)


@pytest.mark.parametrize("manifest", [None, {}, {"sharding_plan": None, "measured_tables": None}])
def test_no_manifest_and_an_empty_one_name_nothing(manifest: dict[str, Any] | None) -> None:
    assert table_plan(manifest) == TablePlan()


def test_shards_of_a_table_on_one_rank_are_one_piece() -> None:
    by_rows = [shard(0, [0, 10], [0, 8]), shard(0, [20, 50], [0, 8])]  # 10 + 30 rows of 8 values
    by_columns = [shard(0, [0, 10], [0, 8]), shard(0, [0, 10], [8, 12])]  # 10 rows of 8 + 4 values
    neither = [shard(0, [0, 10], [0, 8]), shard(0, [10, 20], [8, 12])]
    shapes = table_plan({"sharding_plan": plan_of(c=by_columns, n=neither, r=by_rows)}).shards
    assert [(one.table, one.rows, one.dim) for one in shapes] == [
        ("c", 10, 12),
        ("n", None, None),
        ("r", 40, 8),
    ]


def test_counts_without_a_plan_are_rows_of_unknown_shape() -> None:
    (one,) = table_plan({"measured_tables": {"tables": {"a": {"2": {"ids_per_step": 7}}}}}).shards
    assert (one.rank, one.rows, one.ids_per_step, one.read_bytes_per_step) == (2, None, 7.0, None)


GOOD = plan_of(good=[shard(0, [0, 10], [0, 8])])


@pytest.mark.parametrize(
    "bad",
    [
        {"shards": [shard(-1, [0, 1], [0, 1])]},
        {"shards": [shard(1 << 40, [0, 1], [0, 1])]},
        {"shards": [shard(0, [5, 1], [0, 1])]},
        {"shards": [shard(0, [0, 10**30], [0, 1])]},
        {"shards": [shard(0, [0], [0, 1])]},
        {"shards": [{"rank": "0", "rows": [0, 1], "columns": [0, 1]}]},
        {"shards": {"0": []}},
        {"shards": None},
        {},
        [],
        "shards",
        None,
        True,
    ],
)
def test_a_malformed_table_costs_no_other(bad: object) -> None:
    plan = table_plan({"sharding_plan": {**GOOD, "bad": bad}})
    assert [one.table for one in plan.shards] == ["good"]
    assert plan.malformed == 1


@pytest.mark.parametrize("value", [-1, 1e300, "7", True, None, [1]])
def test_counts_that_cannot_be_are_left_out(value: object) -> None:
    plan = table_plan(
        {"measured_tables": {"tables": {"a": {"0": {"ids_per_step": value}}, "b": {"0": COUNTS}}}}
    )
    assert [one.table for one in plan.shards] == ["b"]
    assert plan.malformed == 1


@pytest.mark.parametrize("section", ["sharding_plan", "measured_tables", "planner_estimates"])
@pytest.mark.parametrize("value", [[], 7, "text", [[[]]]])
def test_a_section_of_another_kind_is_one_malformed_entry(section: str, value: object) -> None:
    assert table_plan({section: value}) == TablePlan(malformed=1)


def test_a_name_that_is_none_is_left_out() -> None:
    long, empty = "k" * (MAX_TABLE_NAME + 1), ""
    plan = table_plan({"sharding_plan": dict.fromkeys((long, empty, "k" * MAX_TABLE_NAME), GOOD["good"])})
    assert [len(one.table) for one in plan.shards] == [MAX_TABLE_NAME]
    assert plan.malformed == 2


def test_deep_nesting_is_malformed_and_no_crash() -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert table_plan({"planner_estimates": {"a": deep}}).malformed == 1
