"""Which partition an id falls into, which row it reads, and where partitions lie."""

import dataclasses

import pytest
import torch

from training.config import Config, DataConfig, FaultConfig, ModelConfig, ShardingConfig
from training.data import ClickStream
from training.sharding import deal_out
from training.tables import hash_of_table, pooled_parts, rows_of

WHOLE = Config(name="test", world_size=4, model=ModelConfig(tables=3, rows=997, dim=16))
SPLIT = dataclasses.replace(WHOLE, sharding=ShardingConfig(partitions=4))


@pytest.mark.parametrize("table", range(3))
def test_the_hash_is_one_to_one_and_can_be_undone(table: int) -> None:
    ids = torch.arange(997)
    hashing = hash_of_table(WHOLE, table)
    assert torch.equal(hashing(ids).sort().values, ids)
    assert torch.equal(hashing.inverse(hashing(ids)), ids)


def test_partitions_share_the_ids_and_give_each_a_row_of_its_own() -> None:
    ids = torch.arange(997)
    taken = torch.zeros(997, dtype=torch.int64)
    for part in pooled_parts(SPLIT)[:4]:
        inside, rows = rows_of(SPLIT, part, ids)
        taken += inside
        assert rows.unique().numel() == rows.numel()  # no two ids on one row
        assert int(rows.max()) < part.rows
        assert abs(int(inside.sum()) - 997 / 4) < 1  # 997 ids in four parts: 249 or 250 each
    assert bool((taken == 1).all())


def test_splitting_a_table_leaves_the_clicks_and_the_number_of_ids_alone() -> None:
    whole, split = ClickStream(WHOLE, rank=1).batch(3), ClickStream(SPLIT, rank=1).batch(3)
    assert torch.equal(whole.labels, split.labels)
    whole_lengths = whole.sparse.lengths().view(3, 1, -1).sum(1)
    assert torch.equal(whole_lengths, split.sparse.lengths().view(3, 4, -1).sum(1))


def test_narrower_tables_hold_the_same_number_of_values_and_see_the_same_clicks() -> None:
    narrow = dataclasses.replace(WHOLE, model=dataclasses.replace(WHOLE.model, narrow=2))
    assert narrow.model.table_dim * 2 == WHOLE.model.table_dim
    assert narrow.model.table_dim * narrow.model.table_rows == 16 * 997
    assert torch.equal(ClickStream(narrow, 0).batch(0).labels, ClickStream(WHOLE, 0).batch(0).labels)


def test_more_rows_keep_more_ids_apart() -> None:
    # 2 x 997 distinct ids on 997 rows: two to a row. With twice the rows each has its own.
    data = DataConfig(vocabulary=2 * 997)
    shared = dataclasses.replace(WHOLE, data=data)
    apart = dataclasses.replace(shared, model=dataclasses.replace(WHOLE.model, narrow=2))
    ids = torch.arange(2 * 997)
    for config, distinct in ((shared, 997), (apart, 2 * 997)):
        _, rows = rows_of(config, pooled_parts(config)[0], ids)
        assert rows.unique().numel() == distinct


def test_a_hot_partition_gets_its_share() -> None:
    fault = FaultConfig(kind="hot_partition", table=1, partition=2, share=0.8)
    config = dataclasses.replace(SPLIT, fault=fault, data=DataConfig(batch_per_rank=512, zipf_exponent=0))
    lengths = ClickStream(config, rank=0).batch(0).sparse.lengths().view(3, 4, -1).sum(2)
    shares = lengths / lengths.sum(1, keepdim=True)
    # 80 % moved there and a quarter of the rest: 85 %. About 4,096 ids: standard error 0.6 %; five of those.
    assert shares[1, 2].item() == pytest.approx(0.85, abs=0.03)
    assert shares[0].max().item() == pytest.approx(0.25, abs=0.04)


@pytest.mark.parametrize(
    ("placement", "owned"),
    [
        ("aligned", [3, 3, 3, 3]),  # 3 tables x 4 partitions on 4 ranks
        ("misaligned", [6, 3, 3, 0]),  # partition 3 goes round to rank 0; rank 3 owns none
    ],
)
def test_placement_of_partitions(placement: str, owned: list[int]) -> None:
    config = dataclasses.replace(SPLIT, sharding=ShardingConfig(partitions=4, placement=placement))
    ranks = list(deal_out(config, pooled_parts(config)).values())
    assert [ranks.count(rank) for rank in range(4)] == owned
