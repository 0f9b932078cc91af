"""The ranking model: embedding tables, interaction, dense layers, click head."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn
from torchrec import EmbeddingBagCollection, EmbeddingCollection, JaggedTensor, KeyedTensor

from training.config import Config, EmulationConfig, ModelConfig
from training.data import Batch
from training.emulation import EmulatedLayer
from training.faults import Fault
from training.tables import bag_configs, sequence_configs


class Prediction(NamedTuple):
    """What a step leaves behind: mean loss [], logits [B], labels [B]; without gradients."""

    loss: torch.Tensor
    logits: torch.Tensor
    labels: torch.Tensor


class Interaction(nn.Module):
    """All pairwise dot products of the vectors, behind the first of them."""

    def __init__(self, vectors: int) -> None:
        super().__init__()
        rows, columns = torch.tril_indices(vectors, vectors, offset=-1)
        self.register_buffer("rows", rows, persistent=False)
        self.register_buffer("columns", columns, persistent=False)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Take [B, V, D]; return [B, D + V(V-1)/2]."""
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        return torch.cat([vectors[:, 0], products[:, self.rows, self.columns]], dim=1)


class TransformerInteraction(nn.Module):
    """Self-attention over the vectors."""

    def __init__(self, dim: int, layers: int) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(dim, nhead=_heads(dim), dim_feedforward=4 * dim, dropout=0.0,
                                           batch_first=True)  # fmt: skip
        self.encoder = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Take [B, V, D]; return [B, V * D]."""
        return self.encoder(vectors).flatten(1)


class SequenceEncoder(nn.Module):
    """Attention over one example's sequence of embedded ids, then their mean."""

    def __init__(self, dim: int, longest: int) -> None:
        super().__init__()
        self.longest = longest
        self.attention = nn.MultiheadAttention(dim, _heads(dim), batch_first=True)

    def forward(self, sequence: JaggedTensor) -> torch.Tensor:
        """Take a jagged [B, L, D]; return [B, D]."""
        padded = sequence.to_padded_dense(self.longest)
        present = torch.arange(self.longest, device=padded.device) < sequence.lengths().unsqueeze(1)
        attended, _ = self.attention(padded, padded, padded, key_padding_mask=~present, need_weights=False)
        return (attended * present.unsqueeze(2)).sum(1) / present.sum(1, keepdim=True)


def _heads(dim: int) -> int:
    return 4 if dim % 16 == 0 else 1


class DensePart(nn.Module):
    """Everything behind the embeddings: dense features [B, F] and vectors [B, T, D] to logits [B]."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        model, dim = config.model, config.model.table_dim
        vectors = model.tables + model.sequence_tables + 1
        self.autocast = config.dense.precision == "bf16"
        self.dense_in = nn.Linear(model.dense_features, dim)
        if model.interaction == "dot":
            self.interaction: nn.Module = Interaction(vectors)
            width = dim + vectors * (vectors - 1) // 2
        else:
            self.interaction = TransformerInteraction(dim, model.transformer_layers)
            width = vectors * dim
        self.layers = _dense_layers(width, model, config.emulation)

    def forward(self, dense: torch.Tensor, embedded: torch.Tensor) -> torch.Tensor:
        """Return the logits [B], in FP32 whatever the layers compute in."""
        with torch.autocast(dense.device.type, torch.bfloat16, enabled=self.autocast):
            vectors = torch.cat([self.dense_in(dense).unsqueeze(1), embedded], dim=1)
            logits = self.layers(self.interaction(vectors)).squeeze(1)
        return logits.float()


def _dense_layers(width: int, model: ModelConfig, emulation: EmulationConfig) -> nn.Sequential:
    share = 1 / len(model.hidden)
    layers: list[nn.Module] = []
    for hidden in model.hidden:
        layers += [nn.Linear(width, hidden), nn.ReLU()]
        layers += [EmulatedLayer(emulation.forward_ms * share, emulation.backward_ms * share)]
        width = hidden
    return nn.Sequential(*layers, nn.Linear(width, 1))


class Vectors(nn.Module):
    """The pooled vectors [B, T, D] of a step: partitions of a table are added up again."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.shape = (config.model.tables, config.sharding.partitions or 1, config.model.table_dim)
        self.order = [name for table in bag_configs(config) for name in table.feature_names]

    def forward(self, embedded: KeyedTensor) -> torch.Tensor:
        """Take the values [B, T * P * D] that the tables returned, in the order of their owners.

        The dense part knows tables by their place, so the plan must not decide about it: a checkpoint would
        mean something else on another number of ranks.
        """
        in_order = embedded.keys() == self.order
        values = embedded.values() if in_order else KeyedTensor.regroup([embedded], [self.order])[0]
        return values.view(values.shape[0], *self.shape).sum(2)


class Start(nn.Module):
    """Where a late rank is late. A module, so that TrainPipelineSparseDist's tracing does not run it."""

    def __init__(self, fault: Fault) -> None:
        super().__init__()
        self.fault = fault

    def forward(self, dense: torch.Tensor) -> torch.Tensor:
        """Return ``dense`` unchanged."""
        self.fault.before_forward(dense)
        return dense


class RankingModel(nn.Module):
    """Predicts the logit of a click. The tables live on the meta device until they are sharded."""

    def __init__(self, config: Config, fault: Fault) -> None:
        super().__init__()
        meta = torch.device("meta")
        model = config.model
        self.start = Start(fault)
        self.tables = EmbeddingBagCollection(tables=bag_configs(config), device=meta)
        self.vectors = Vectors(config)
        self.has_sequences = model.sequence_tables > 0
        if self.has_sequences:
            self.sequences = EmbeddingCollection(tables=sequence_configs(config), device=meta)
            self.encoders = nn.ModuleDict(
                {
                    table.feature_names[0]: SequenceEncoder(model.table_dim, 2 * config.data.pooling - 1)
                    for table in sequence_configs(config)
                }
            )
        self.dense_part = DensePart(config)

    def forward(self, batch: Batch) -> tuple[torch.Tensor, Prediction]:
        """Return the mean loss, and the prediction without gradients."""
        dense = self.start(batch.dense)
        pooled = self.vectors(self.tables(batch.sparse))
        if self.has_sequences:
            embedded = self.sequences(batch.sparse)
            encoded = [encoder(embedded[name]) for name, encoder in self.encoders.items()]
            pooled = torch.cat([pooled, torch.stack(encoded, dim=1)], dim=1)
        logits = self.dense_part(dense, pooled)
        loss = nn.functional.binary_cross_entropy_with_logits(logits, batch.labels)
        return loss, Prediction(loss.detach(), logits.detach(), batch.labels)
