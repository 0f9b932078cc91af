"""A synthetic click stream with a planted model.

There is something to learn, and its ids are as skewed as real ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torchrec.sparse.jagged_tensor import KeyedJaggedTensor
from torchrec.streamable import Pipelineable

from training.config import Config
from training.tables import feature_names, hash_of_table, pooled_parts, rows_of, sequence_parts


@dataclass
class Batch(Pipelineable):
    """One rank's examples of one step: dense [B, F], jagged ids per feature, labels [B] of 0 and 1."""

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

    def pin_memory(self) -> Batch:
        """Return the batch in page-locked memory, from which a copy to the GPU is asynchronous."""
        return Batch(self.dense.pin_memory(), self.sparse.pin_memory(), self.labels.pin_memory())

    def record_stream(self, stream: torch.Stream) -> None:
        """Keep the memory until ``stream`` has used it."""
        self.dense.record_stream(stream)
        self.sparse.record_stream(stream)
        self.labels.record_stream(stream)


class ClickStream:
    """An endless stream for one rank.

    Batch ``n`` depends on (seed, rank, n) and the shape of the data only, so a run can be repeated or
    resumed, and runs that differ in sharding, number formats or ``narrow`` see the same clicks.

    A click follows ``sigmoid(bias + dense . w + sum over tables of the mean planted score of the ids)``.
    """

    def __init__(self, config: Config, rank: int) -> None:
        self._config = config
        self._rank = rank
        planted = torch.Generator().manual_seed(config.data.seed)  # the same model on every rank
        features = config.model.dense_features
        self._weights = torch.randn(features, generator=planted) / features**0.5
        self._tables = config.model.tables + config.model.sequence_tables
        popularity = torch.arange(1, config.vocabulary + 1, dtype=torch.float64) ** -config.data.zipf_exponent
        self._cumulative = popularity.cumsum(0) / popularity.sum()

    def __iter__(self) -> Iterator[Batch]:
        """Yield batch 0, 1, ... without end."""
        index = 0
        while True:
            yield self.batch(index)
            index += 1

    def planted_scores(self, table: int, ids: torch.Tensor) -> torch.Tensor:
        """Return what each id of ``table`` adds to the logit of a click: uniform, mean 0, deviation 1."""
        # A hash and not a stored vector per table: the vocabulary may have 100 million ids.
        mixed = (ids + 1) * 0x2545F491 + (table + 1 + self._config.data.seed) * 0x9E3779B1
        mixed = (mixed ^ (mixed >> 15)) * 0x85EBCA6B
        mixed = (mixed ^ (mixed >> 13)) & 0xFFFFFF
        return (mixed.float() / 0xFFFFFF - 0.5) * 12**0.5

    def batch(self, index: int) -> Batch:
        """Return batch ``index`` of this rank."""
        data, model = self._config.data, self._config.model
        seed = ((data.seed * 1_000_003 + self._rank) * 1_000_003 + index) % 2**63  # what a generator takes
        generator = torch.Generator().manual_seed(seed)
        size = data.batch_per_rank
        dense = torch.randn(size, model.dense_features, generator=generator)
        lengths = torch.randint(1, 2 * data.pooling, (self._tables, size), generator=generator)
        logits = dense @ self._weights - 1.0
        ids_of: list[torch.Tensor] = []
        for table in range(self._tables):
            ids = self._draw(table, int(lengths[table].sum()), generator)
            owner = torch.repeat_interleave(torch.arange(size), lengths[table])
            score = torch.zeros(size).index_add_(0, owner, self.planted_scores(table, ids))
            logits += score / lengths[table]
            ids_of.append(ids)
        labels = torch.bernoulli(torch.sigmoid(logits), generator=generator)
        return Batch(dense=dense, sparse=self._jagged(ids_of, lengths), labels=labels)

    def _draw(self, table: int, count: int, generator: torch.Generator) -> torch.Tensor:
        drawn = torch.rand(count, generator=generator, dtype=torch.float64)
        popularity = torch.searchsorted(self._cumulative, drawn).clamp_(max=self._config.vocabulary - 1)
        hashing = hash_of_table(self._config, table)
        # Hot ids are scattered over the vocabulary: neighbours in a real one have nothing in common.
        ids = hashing.inverse(popularity)
        fault = self._config.fault
        if fault.kind != "hot_partition" or table != fault.table:
            return ids
        moved = torch.rand(count, generator=generator) < fault.share
        partitions = self._config.sharding.partitions
        hashed = hashing(ids)
        hot = hashed - hashed % partitions + fault.partition
        hot = torch.where(hot < self._config.vocabulary, hot, hot - partitions)
        return torch.where(moved, hashing.inverse(hot), ids)

    def _jagged(self, ids_of: list[torch.Tensor], lengths: torch.Tensor) -> KeyedJaggedTensor:
        """Return the ids as rows of the tables as they are built, one key per table or partition."""
        size = self._config.data.batch_per_rank
        values, counts = [], []
        for part in [*pooled_parts(self._config), *sequence_parts(self._config)]:
            inside, rows = rows_of(self._config, part, ids_of[part.table])
            owner = torch.repeat_interleave(torch.arange(size), lengths[part.table])
            values.append(rows)
            counts.append(owner[inside].bincount(minlength=size))
        return KeyedJaggedTensor.from_lengths_sync(
            keys=feature_names(self._config),
            values=torch.cat(values),
            lengths=torch.cat(counts).to(torch.int32),
        )
