"""Which tables there are, which partition of a table an id falls into, and which row it reads."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torchrec import EmbeddingBagConfig, EmbeddingConfig

from training.config import Config

_SPREAD = 2_654_435_761
"""Knuth's multiplicative hash; any number without a common factor with the vocabulary would do."""


@dataclass(frozen=True)
class HashIds:
    """A hash of the ids of one table that is one-to-one on the vocabulary.

    One-to-one, so that splitting a table into partitions loses no id to a collision that the undivided table
    does not have.
    """

    vocabulary: int
    factor: int
    offset: int

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        """Return the hash of each id, 0 to vocabulary - 1."""
        return (ids * self.factor + self.offset) % self.vocabulary

    def inverse(self, hashes: torch.Tensor) -> torch.Tensor:
        """Return the id of each hash."""
        back = pow(self.factor, -1, self.vocabulary)
        return ((hashes - self.offset) * back) % self.vocabulary


def hash_of_table(config: Config, table: int) -> HashIds:
    """Return the hash that places the ids of ``table``."""
    vocabulary = config.vocabulary
    # Small enough that id * factor stays inside 64 bits for any vocabulary below 2**31.
    factor = (_SPREAD + 2 * table) % vocabulary or 1
    while math.gcd(factor, vocabulary) != 1:
        factor += 1
    return HashIds(vocabulary, factor, (table * 7919) % vocabulary)


@dataclass(frozen=True)
class Part:
    """A table as it is built: a whole table, or one hash partition of it. Its feature has its name."""

    name: str
    table: int
    partition: int | None
    rows: int


def table_names(config: Config) -> list[str]:
    """Return the names of the pooled tables, before they are split into partitions."""
    return [f"table_{index}" for index in range(config.model.tables)]


def pooled_parts(config: Config) -> list[Part]:
    """Return the pooled tables as they are built, partitions of a table next to each other."""
    partitions = config.sharding.partitions
    if partitions == 0:
        names = enumerate(table_names(config))
        return [Part(name, table, None, config.model.table_rows) for table, name in names]
    rows = math.ceil(config.model.table_rows / partitions)
    return [
        Part(f"{name}_part_{partition}", table, partition, rows)
        for table, name in enumerate(table_names(config))
        for partition in range(partitions)
    ]


def sequence_parts(config: Config) -> list[Part]:
    """Return the tables whose ids form a sequence; they count on behind the pooled ones."""
    first, rows = config.model.tables, config.model.table_rows
    count = config.model.sequence_tables
    return [Part(f"sequence_{index}", first + index, None, rows) for index in range(count)]


def rows_of(config: Config, part: Part, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return (which of ``ids`` belong to ``part``, the rows they read there)."""
    if part.partition is None:
        return torch.ones_like(ids, dtype=torch.bool), ids % part.rows
    partitions = config.sharding.partitions
    hashed = hash_of_table(config, part.table)(ids)
    inside = hashed % partitions == part.partition
    return inside, (hashed[inside] // partitions) % part.rows


def feature_names(config: Config) -> list[str]:
    """Return the keys of a batch's ids: one per table as it is built."""
    return [f"feature_{part.name}" for part in [*pooled_parts(config), *sequence_parts(config)]]


def bag_configs(config: Config) -> list[EmbeddingBagConfig]:
    """Return the pooled tables in TorchRec's terms."""
    return [
        EmbeddingBagConfig(
            name=part.name,
            embedding_dim=config.model.table_dim,
            num_embeddings=part.rows,
            feature_names=[f"feature_{part.name}"],
        )
        for part in pooled_parts(config)
    ]


def sequence_configs(config: Config) -> list[EmbeddingConfig]:
    """Return the sequence tables in TorchRec's terms."""
    return [
        EmbeddingConfig(
            name=part.name,
            embedding_dim=config.model.table_dim,
            num_embeddings=part.rows,
            feature_names=[f"feature_{part.name}"],
        )
        for part in sequence_parts(config)
    ]
