"""A proposed placement, with loads worked out by hand."""

import dataclasses
from typing import Any

import pytest

from tests.builders import JobBuilder
from tests.replay.jobs import load
from traceinsight.engine.placement import propose_placement
from traceinsight.trace.trace_set import TraceSet

# Bytes read per step of each shard, one a table: rank 0 has 6 + 2, ranks 1 and 2 have 2 each, rank 3 none.
READ = {"a": (0, 600), "b": (0, 200), "c": (1, 200), "d": (2, 200)}


def manifest(**fields: Any) -> dict[str, Any]:
    plan = {
        table: {
            "sharding_type": "table_wise",
            "shards": [{"rank": rank, "rows": [0, 50], "columns": [0, 8]}],
        }
        for table, (rank, _) in READ.items()
    }
    counts = {
        table: {str(rank): {"ids_per_step": 1, "read_bytes_per_step": read, "returned_bytes_per_step": 0}}
        for table, (rank, read) in READ.items()
    }
    return {"sharding_plan": plan, "measured_tables": {"tables": counts}, **fields}


@pytest.fixture(scope="module")
def job() -> TraceSet:
    return load(JobBuilder(world_size=4).build())


def described(job: TraceSet, document: dict[str, Any] | None) -> TraceSet:
    return dataclasses.replace(job, manifest=document)


def test_the_proposal_names_owners_and_loads(job: TraceSet) -> None:
    found = propose_placement(described(job, manifest()))
    # 12 hundred bytes on 4 ranks, 300 each: 800 / 300 today. Table a alone has 600: 600 / 300 then.
    assert (found.before, found.after) == (pytest.approx(8 / 3), pytest.approx(2))
    assert found.moved == 1
    assert {one.table: (one.rank, one.proposed_rank) for one in found.shards} == {
        "a": (0, 0), "b": (0, 3), "c": (1, 1), "d": (2, 2)
    }  # fmt: skip
    assert [(one.rank, one.today_bytes, one.proposed_bytes) for one in found.ranks] == [
        (0, 800, 600), (1, 200, 200), (2, 200, 200), (3, 0, 200)
    ]  # fmt: skip
    assert (found.measured, found.reason) == (True, None)
    assert (found.shards[0].rows, found.shards[0].dim, found.shards[0].cost_bytes) == (50, 8, 600)


def test_with_sharding_groups_only_owners_take_part(job: TraceSet) -> None:
    """The plan lists the first group; rank 3 belongs to another one, whose copy is placed alike."""
    found = propose_placement(described(job, manifest(parallelism={"kind": "2d", "group_size": 3})))
    assert [one.rank for one in found.ranks] == [0, 1, 2]
    assert found.before == 2  # 800 of a mean of 400


def test_without_counts_the_description_of_the_tables_is_taken(job: TraceSet) -> None:
    tables = [{"name": table, "rows": 50, "dim": 8, "mean_ids": 3.0} for table in READ]
    found = propose_placement(described(job, manifest(measured_tables=None, tables=tables)))
    assert not found.measured
    # Per example: 3 ids read 8 values of 4 bytes each, and one pooled vector of 32 bytes goes back.
    assert {one.cost_bytes for one in found.shards} == {3 * 32 + 32}


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        (None, "no run.json"),
        ({}, "no sharding plan"),
        (
            {"sharding_plan": {"a": {"shards": [{"rank": 1 << 70, "rows": [0, 1], "columns": [0, 1]}]}}},
            "plan",
        ),
        ({"sharding_plan": manifest()["sharding_plan"]}, "neither counted bytes"),
    ],
)
def test_where_nothing_can_be_proposed_the_reason_is_said(
    job: TraceSet, document: dict[str, Any] | None, reason: str
) -> None:
    found = propose_placement(described(job, document))
    assert (found.shards, found.ranks, found.before) == ([], [], None)
    assert found.reason is not None
    assert reason in found.reason


def test_tables_that_nobody_looked_up_are_not_placed(job: TraceSet) -> None:
    document = manifest()
    for of_rank in document["measured_tables"]["tables"].values():
        for counted in of_rank.values():
            counted["read_bytes_per_step"] = 0
    found = propose_placement(described(job, document))
    assert found.shards == []
    assert "no shard was looked up" in str(found.reason)
