"""Ids and bytes per table and rank, and the planner's estimates: by attributes, without torchrec."""

from types import SimpleNamespace

import pytest
import torch

from traceinsight.capture.manifest import describe_estimates
from traceinsight.capture.meter import TableMeter, merge


class Lookup(torch.nn.Module):
    """What TorchRec keeps in ``_lookups``: tables in groups; called with what arrived for them."""

    def __init__(self, *tables: SimpleNamespace) -> None:
        super().__init__()
        self.grouped_configs = [SimpleNamespace(embedding_tables=[table]) for table in tables]

    def forward(self, features: SimpleNamespace) -> SimpleNamespace:
        return features


def table(name: str, pooling: str, columns: int, features: int = 1) -> SimpleNamespace:
    return SimpleNamespace(
        name=name,
        local_cols=columns,
        embedding_dim=64,
        feature_names=[f"{name}_{index}" for index in range(features)],
        pooling=SimpleNamespace(value=pooling),
        data_type=SimpleNamespace(value="FP16"),
    )


def sharded(*tables: SimpleNamespace) -> tuple[torch.nn.Module, Lookup]:
    model, lookup = torch.nn.Module(), Lookup(*tables)
    model._lookups = [lookup]  # a plain list, as in TorchRec
    return model, lookup


def arrived(ids: list[int], examples: int) -> SimpleNamespace:
    return SimpleNamespace(length_per_key=lambda: ids, stride=lambda: examples)


def test_pooled_tables_return_a_row_per_example_and_sequences_a_row_per_id() -> None:
    model, lookup = sharded(
        table("user", "SUM", columns=32, features=2), table("history", "NONE", columns=64)
    )
    meter = TableMeter(model, pytest.fail)
    meter.counting = True
    lookup(arrived([100, 20, 7], examples=10))

    rows = meter.describe()["tables"]
    # user: two features, 120 ids of 32 FP16 columns; 10 examples x 2 features come back.
    assert rows["user"] == {"ids": 120, "read_bytes": 120 * 64, "returned_bytes": 20 * 64}
    # history: 7 ids of 64 FP16 columns, each comes back.
    assert rows["history"] == {"ids": 7, "read_bytes": 7 * 128, "returned_bytes": 7 * 128}


def test_nothing_is_counted_outside_the_profiled_steps() -> None:
    model, lookup = sharded(table("user", "SUM", columns=32))
    meter = TableMeter(model, pytest.fail)
    lookup(arrived([100], examples=10))
    assert meter.describe() == {"steps": 0, "tables": {}}


def test_ranks_are_joined_per_step_and_absent_ones_named() -> None:
    counts = {"ids": 30, "read_bytes": 300, "returned_bytes": 60}
    joined = merge({2: {"steps": 3, "tables": {"user": counts}}}, world_size=4)
    assert joined == {
        "steps": 3,
        "missing_ranks": [0, 1, 3],
        "tables": {
            "user": {
                "2": {"ids_per_step": 10.0, "read_bytes_per_step": 100.0, "returned_bytes_per_step": 20.0}
            }
        },
    }


@pytest.mark.parametrize("with_estimate", [True, False])
def test_planner_estimates_per_shard(with_estimate: bool) -> None:
    perf = SimpleNamespace(fwd_compute=1.5, fwd_comms=float("inf"), bwd_compute=3.0, bwd_comms=0.25)
    storage = SimpleNamespace(hbm=1024, ddr=0)
    shard = SimpleNamespace(rank=3, perf=perf if with_estimate else None, storage=storage)
    described = describe_estimates([SimpleNamespace(name="user", shards=[shard])])
    if not with_estimate:
        assert described == {}
        return
    (estimate,) = described["user"]
    assert (estimate["rank"], estimate["fwd_compute_ms"], estimate["bwd_comms_ms"]) == (3, 1.5, 0.25)
    assert estimate["fwd_comms_ms"] is None  # an infinity is no number JSON could hold
    assert (estimate["hbm_bytes"], estimate["ddr_bytes"]) == (1024, 0)
