"""The ranking model: embedding tables, dot interaction, dense layers, click head."""

from __future__ import annotations

import torch
from torch import nn
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedTensor
from torchrec.distributed import DistributedModelParallel
from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
from torchrec.distributed.planner import EmbeddingShardingPlanner, ParameterConstraints, Topology
from torchrec.distributed.types import ShardingEnv
from torchrec.optim.apply_optimizer_in_backward import apply_optimizer_in_backward
from torchrec.optim.keyed import CombinedOptimizer, KeyedOptimizerWrapper
from torchrec.optim.optimizers import in_backward_optimizer_filter
from torchrec.optim.rowwise_adagrad import RowWiseAdagrad

from training.config import Config, EmulationConfig, ModelConfig
from training.data import Batch, feature_names, table_names
from training.emulation import EmulatedLayer
from training.faults import Fault


def table_configs(config: Config) -> list[EmbeddingBagConfig]:
    """Return the tables in TorchRec's terms."""
    return [
        EmbeddingBagConfig(
            name=table,
            embedding_dim=config.model.dim,
            num_embeddings=config.model.rows,
            feature_names=[feature],
        )
        for table, feature in zip(table_names(config), feature_names(config), strict=True)
    ]


class Interaction(nn.Module):
    """All pairwise dot products of the embeddings and the dense vector, behind the dense vector itself."""

    def __init__(self, vectors: int) -> None:
        super().__init__()
        rows, columns = torch.tril_indices(vectors, vectors, offset=-1)
        self.register_buffer("rows", rows, persistent=False)
        self.register_buffer("columns", columns, persistent=False)

    def forward(self, dense: torch.Tensor, embedded: KeyedTensor) -> torch.Tensor:
        """Take [B, D] and V vectors of D values; return [B, D + V(V+1)/2]."""
        size, dim = dense.shape
        vectors = torch.cat([dense.unsqueeze(1), embedded.values().view(size, -1, dim)], dim=1)
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        return torch.cat([dense, products[:, self.rows, self.columns]], dim=1)


def _dense_layers(width: int, model: ModelConfig, emulation: EmulationConfig) -> nn.Sequential:
    share = 1 / len(model.hidden)
    layers: list[nn.Module] = []
    for hidden in model.hidden:
        layers += [nn.Linear(width, hidden), nn.ReLU()]
        layers += [EmulatedLayer(emulation.forward_ms * share, emulation.backward_ms * share)]
        width = hidden
    return nn.Sequential(*layers, nn.Linear(width, 1))


class RankingModel(nn.Module):
    """Predicts the logit of a click. The tables live on the meta device until they are sharded."""

    def __init__(self, config: Config, fault: Fault) -> None:
        super().__init__()
        model = config.model
        self.tables = EmbeddingBagCollection(tables=table_configs(config), device=torch.device("meta"))
        self.dense_in = nn.Linear(model.dense_features, model.dim)
        self.interaction = Interaction(model.tables + 1)
        pairs = model.tables * (model.tables + 1) // 2
        self.layers = _dense_layers(model.dim + pairs, model, config.emulation)
        self._fault = fault

    def forward(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (mean loss, logits [B])."""
        self._fault.before_forward(batch.dense)
        embedded = self.tables(batch.sparse)
        logits = self.layers(self.interaction(self.dense_in(batch.dense), embedded)).squeeze(1)
        return nn.functional.binary_cross_entropy_with_logits(logits, batch.labels), logits


def build(
    config: Config, fault: Fault, device: torch.device
) -> tuple[DistributedModelParallel, CombinedOptimizer]:
    """Shard the model over the default process group.

    Return it with the optimizer of tables and dense part.
    """
    torch.manual_seed(config.data.seed)  # the dense part must start the same on every rank
    model = RankingModel(config, fault)
    apply_optimizer_in_backward(RowWiseAdagrad, model.tables.parameters(), {"lr": config.loop.embedding_lr})
    planner = EmbeddingShardingPlanner(
        topology=Topology(
            world_size=config.world_size, compute_device=device.type, local_world_size=config.world_size
        ),
        constraints={
            name: ParameterConstraints(sharding_types=[config.model.sharding]) for name in table_names(config)
        },
    )
    group = torch.distributed.GroupMember.WORLD
    sharders = [EmbeddingBagCollectionSharder()]
    sharded = DistributedModelParallel(
        module=model,
        env=ShardingEnv.from_process_group(group),
        device=device,
        plan=planner.collective_plan(model, sharders, group),
        sharders=sharders,
    )
    dense = KeyedOptimizerWrapper(
        dict(in_backward_optimizer_filter(sharded.named_parameters())),
        lambda parameters: torch.optim.Adagrad(parameters, lr=config.loop.dense_lr),
    )
    return sharded, CombinedOptimizer([sharded.fused_optimizer, dense])
