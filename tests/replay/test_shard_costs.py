"""What shards cost by the manifest: measured, else as described, else not known."""

import pytest

from traceinsight.replay.shard_costs import all_shards, shard_costs


@pytest.mark.parametrize("end", [10**400, 2**53 + 1, 0, -5, True, 8.5, "8", None])
def test_a_shard_of_a_size_that_cannot_be_is_not_described(end: object) -> None:
    def plan(last: object) -> dict[str, object]:
        return {"sharding_plan": {"user": {"shards": [{"rank": 0, "rows": [0, last], "columns": [0, 8]}]}}}

    assert [one.row_count for one in all_shards(plan(100))] == [100]
    assert all_shards(plan(end)) == []


@pytest.mark.parametrize("cost", [10**400, 1e308, -1, True, "8", None])
def test_measured_bytes_that_cannot_be_are_not_measured(cost: object) -> None:
    def manifest(read: object) -> dict[str, object]:
        counts = {"read_bytes_per_step": read, "returned_bytes_per_step": 8, "ids_per_step": 2}
        plan = {"user": {"shards": [{"rank": 0, "rows": [0, 100], "columns": [0, 8]}]}}
        return {"sharding_plan": plan, "measured_tables": {"tables": {"user": {"0": counts}}}}

    found = shard_costs(manifest(64))
    assert found is not None and found.total_bytes == [64 + 8]
    assert shard_costs(manifest(cost)) is None  # nor are the tables described


def test_one_malformed_table_of_the_plan_costs_the_whole_plan() -> None:
    good = {"shards": [{"rank": 0, "rows": [0, 100], "columns": [0, 8]}]}
    assert all_shards({"sharding_plan": {"a": good, "b": {"shards": None}}}) == []


def test_unmeasured_shards_cost_what_their_tables_describe() -> None:
    # A fourth of a table of 400 rows, half its columns; 2 ids per example on the whole table.
    plan = {"user": {"shards": [{"rank": 0, "rows": [0, 100], "columns": [0, 8]}]}}
    table = {"name": "user", "rows": 400, "dim": 16, "mean_ids": 2.0}
    found = shard_costs({"sharding_plan": plan, "tables": [table]})
    assert found is not None and not found.measured
    assert (found.ids, found.read_bytes, found.returned_bytes) == ([0.5], [0.5 * 8 * 4], [8 * 4.0])
