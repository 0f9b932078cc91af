"""The click stream repeats itself exactly, is as skewed as asked, and can be learnt."""

import dataclasses

import torch

from training.config import Config, DataConfig, ModelConfig
from training.data import ClickStream

CONFIG = Config(
    name="test",
    world_size=2,
    model=ModelConfig(tables=3, rows=1000, dim=4),
    data=DataConfig(batch_per_rank=512, pooling=4, zipf_exponent=1.0),
)


def test_a_batch_depends_on_seed_rank_and_index_only() -> None:
    stream, again = iter(ClickStream(CONFIG, rank=0)), ClickStream(CONFIG, rank=0)
    first, second = next(stream), next(stream)
    assert torch.equal(second.sparse.values(), again.batch(1).sparse.values())
    assert torch.equal(second.labels, again.batch(1).labels)
    assert not torch.equal(first.dense, second.dense)
    assert not torch.equal(first.dense, ClickStream(CONFIG, rank=1).batch(0).dense)


def test_shapes_and_lengths() -> None:
    batch = ClickStream(CONFIG, rank=0).batch(0)
    lengths = batch.sparse.lengths().view(3, 512)
    assert batch.dense.shape == (512, 13)
    assert batch.labels.shape == (512,)
    assert int(lengths.sum()) == batch.sparse.values().numel()
    # Drawn evenly from 1..7: mean 4, standard error sqrt(4 / 1536) = 0.05; five of those.
    assert (int(lengths.min()), int(lengths.max())) == (1, 7)
    assert abs(lengths.float().mean().item() - 4) < 0.25


def hottest_share(exponent: float) -> float:
    """Share of lookups of table 0 that go to its most frequent id."""
    config = dataclasses.replace(CONFIG, data=dataclasses.replace(CONFIG.data, zipf_exponent=exponent))
    ids = ClickStream(config, rank=0).batch(0).sparse["feature_table_0"].values()
    return ids.bincount().max().item() / ids.numel()


def test_zipf_exponent_sets_the_skew() -> None:
    # Exponent 1 over 1000 rows: the hottest row has 1 / H(1000) = 1 / 7.485 = 13.4 %. About 2048 draws:
    # standard error 0.75 %; five of those.
    assert abs(hottest_share(1.0) - 0.134) < 0.038
    # Exponent 0: 0.1 % each; the largest of 1000 counts with mean 2 stays far below 1 % of 2048.
    assert hottest_share(0.0) < 0.01


def test_labels_follow_the_planted_model() -> None:
    # With one table and one id per example the planted score is all that differs: among rows whose score is
    # high, clicks must be frequent, among low ones rare.
    config = dataclasses.replace(
        CONFIG,
        model=ModelConfig(tables=1, rows=1000, dim=4),
        data=DataConfig(batch_per_rank=4096, pooling=1, zipf_exponent=0.0),
    )
    stream = ClickStream(config, rank=0)
    batch = stream.batch(0)
    scores = stream.planted_scores(0, batch.sparse.values())  # as many rows as ids: a row is an id
    high, low = batch.labels[scores > 1].mean().item(), batch.labels[scores < -1].mean().item()
    # sigmoid(-1 + 1.5) = 62 % against sigmoid(-1 - 1.5) = 8 % before the noise of the dense part.
    assert high - low > 0.3
