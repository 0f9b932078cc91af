"""A synthetic click stream with a planted model.

There is something to learn, and its ids are as skewed as real ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor

from training.config import Config


@dataclass
class Batch:
    """One rank's examples of one step: dense [B, F], jagged ids per table, labels [B] of 0 and 1."""

    dense: torch.Tensor
    sparse: KeyedJaggedTensor
    labels: torch.Tensor

    def to(self, device: torch.device, non_blocking: bool = False) -> Batch:
        """Return the batch on ``device``."""
        return Batch(
            dense=self.dense.to(device, non_blocking=non_blocking),
            sparse=self.sparse.to(device, non_blocking=non_blocking),
            labels=self.labels.to(device, non_blocking=non_blocking),
        )


def table_names(config: Config) -> list[str]:
    """Return the names of the tables; feature i reads table i."""
    return [f"table_{index}" for index in range(config.model.tables)]


def feature_names(config: Config) -> list[str]:
    """Return the names of the sparse features, one per table."""
    return [f"feature_{index}" for index in range(config.model.tables)]


class ClickStream:
    """An endless stream for one rank.

    Batch ``n`` depends on (seed, rank, n) only, so a run can be repeated or resumed.

    A click follows ``sigmoid(bias + dense . w + sum over tables of the mean planted score of the ids)``.
    """

    def __init__(self, config: Config, rank: int) -> None:
        self._config = config
        self._rank = rank
        planted = torch.Generator().manual_seed(config.data.seed)  # the same model on every rank
        model = config.model
        self._scores = torch.randn(model.tables, model.rows, generator=planted)
        self._weights = torch.randn(model.dense_features, generator=planted) / model.dense_features**0.5
        # Hot ids are scattered over the table: neighbours in a real table have nothing in common.
        self._ids = torch.stack([torch.randperm(model.rows, generator=planted) for _ in range(model.tables)])
        popularity = torch.arange(1, model.rows + 1, dtype=torch.float64) ** -config.data.zipf_exponent
        self._cumulative = popularity.cumsum(0) / popularity.sum()

    def __iter__(self) -> Iterator[Batch]:
        """Yield batch 0, 1, ... without end."""
        index = 0
        while True:
            yield self.batch(index)
            index += 1

    def planted_scores(self, table: int) -> torch.Tensor:
        """Return what each row of ``table`` adds to the logit of a click, [rows]."""
        return self._scores[table]

    def batch(self, index: int) -> Batch:
        """Return batch ``index`` of this rank."""
        data, model = self._config.data, self._config.model
        seed = (data.seed * 1_000_003 + self._rank) * 1_000_003 + index
        generator = torch.Generator().manual_seed(seed)
        size = data.batch_per_rank
        dense = torch.randn(size, model.dense_features, generator=generator)
        lengths = torch.randint(1, 2 * data.pooling, (model.tables, size), generator=generator)
        logits = dense @ self._weights - 1.0
        values = []
        for table in range(model.tables):
            drawn = torch.rand(int(lengths[table].sum()), generator=generator, dtype=torch.float64)
            ids = self._ids[table][torch.searchsorted(self._cumulative, drawn).clamp_(max=model.rows - 1)]
            values.append(ids)
            owner = torch.repeat_interleave(torch.arange(size), lengths[table])
            score = torch.zeros(size).index_add_(0, owner, self.planted_scores(table)[ids])
            logits += score / lengths[table]
        labels = torch.bernoulli(torch.sigmoid(logits), generator=generator)
        sparse = KeyedJaggedTensor.from_lengths_sync(
            keys=feature_names(self._config),
            values=torch.cat(values),
            lengths=lengths.flatten().to(torch.int32),
        )
        return Batch(dense=dense, sparse=sparse, labels=labels)
