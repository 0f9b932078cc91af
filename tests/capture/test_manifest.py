"""What run.json may say, and what it must not."""

from types import SimpleNamespace

import pytest

from traceinsight.capture.environment import ALLOWED_NAMES, allowed_environment
from traceinsight.capture.layout import Place, find_place
from traceinsight.capture.manifest import describe_plan, describe_tables, finite


def test_only_listed_variables_are_told() -> None:
    environment = {
        "NCCL_PROTO": "Simple",
        "NCCL_NET_PASSWORD": "hunter2",  # the prefix of the list's names, and a secret
        "FI_PROVIDER": "efa",
        "AWS_SECRET_ACCESS_KEY": "hunter2",
        "MASTER_ADDR": "10.0.0.1",
    }
    assert allowed_environment(environment) == {"FI_PROVIDER": "efa", "NCCL_PROTO": "Simple"}


def test_the_list_holds_no_pattern_and_no_credential() -> None:
    words = ("*", "KEY", "SECRET", "PASSW", "CREDENTIAL", "AUTH")
    assert [name for name in ALLOWED_NAMES if any(word in name for word in words)] == []


def test_rank_comes_from_rank_and_never_from_local_rank() -> None:
    # Rank 5 of 8 is local rank 1 of the second node.
    environment = {"RANK": "5", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "LOCAL_WORLD_SIZE": "4"}
    assert find_place(environment) == Place(rank=5, world_size=8, ranks_per_node=4)


def test_local_rank_alone_is_no_rank() -> None:
    assert find_place({"LOCAL_RANK": "3"}) == Place(rank=0, world_size=1, ranks_per_node=None)


@pytest.mark.parametrize(
    ("place", "nodes"),
    [
        (Place(0, 4, 2), [{"node": 0, "ranks": [0, 1]}, {"node": 1, "ranks": [2, 3]}]),
        (Place(0, 5, 2), None),  # uneven: which node has three cannot be told from here
        (Place(0, 4, None), None),
        (Place(0, 4, 0), None),
    ],
)
def test_nodes(place: Place, nodes: list[dict[str, object]] | None) -> None:
    assert place.nodes() == nodes


def test_tables_without_a_pooling_are_described_as_unknown() -> None:
    table = SimpleNamespace(
        name="user", num_embeddings=1000, embedding_dim=64, feature_names=["id", "friend_id"]
    )
    assert describe_tables([table], mean_ids=None) == [
        {
            "name": "user",
            "rows": 1000,
            "dim": 64,
            "pooling": None,
            "mean_ids": None,
            "features": ["id", "friend_id"],
        }
    ]


def test_column_wise_plan_names_rows_and_columns_of_each_shard() -> None:
    def shard(offset: int, rank: int) -> SimpleNamespace:
        placement = SimpleNamespace(rank=lambda: rank)
        return SimpleNamespace(shard_offsets=[0, offset], shard_sizes=[1000, 32], placement=placement)

    sharding = SimpleNamespace(
        sharding_type="column_wise",
        compute_kernel="fused",
        ranks=[0, 3],
        sharding_spec=SimpleNamespace(shards=[shard(0, 0), shard(32, 3)]),
    )
    plan = SimpleNamespace(plan={"tables": {"user": sharding}})
    assert describe_plan(plan)["user"] == {
        "sharding_type": "column_wise",
        "kernel": "fused",
        "ranks": [0, 3],
        "shards": [
            {"rank": 0, "rows": [0, 1000], "columns": [0, 32]},
            {"rank": 3, "rows": [0, 1000], "columns": [32, 64]},
        ],
    }


def test_a_loss_that_blew_up_becomes_null() -> None:
    values = {"loss": float("nan"), "ne": float("inf"), "rate": 0.5, "none": None}
    assert finite(values) == {"loss": None, "ne": None, "rate": 0.5, "none": None}
