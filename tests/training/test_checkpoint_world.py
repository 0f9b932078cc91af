"""A checkpoint knows no ranks: the same global state under 2 and 4 ranks, by tables and by columns."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.metadata import TensorStorageMetadata

pytestmark = pytest.mark.slow

REPOSITORY = Path(__file__).resolve().parents[2]
MOMENTUM = "optimizer/tables.embedding_bags.table_0.weight/table_0.momentum1"


def work(processes: int, *jobs: str) -> None:
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", str(processes)]
    command += ["--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1"]
    command += ["-m", "tests.training.checkpoint_worker", *jobs]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        command, cwd=REPOSITORY, env=environment, capture_output=True, text=True, timeout=150, check=False
    )
    assert done.returncode == 0, done.stderr


def state(checkpoint: Path) -> dict[str, torch.Tensor]:
    """Every global tensor of a checkpoint, read by one process without any model."""
    reader = dcp.FileSystemReader(checkpoint)
    facts = reader.read_metadata().state_dict_metadata
    tensors = {
        name: torch.empty(fact.size, dtype=fact.properties.dtype)
        for name, fact in facts.items()
        if isinstance(fact, TensorStorageMetadata) and not name.startswith("random/")
    }
    dcp.load(tensors, storage_reader=reader, no_dist=True)
    return tensors


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints 1 (2 ranks), 2 to 4 (made of it by 4 ranks), 5 and 6 (made of 2 and 4 by 2 ranks)."""
    root = tmp_path_factory.mktemp("checkpoints")
    path = {number: root / f"step-{number:012d}" for number in range(1, 7)}
    work(2, f"table_wise:-:3:{path[1]}")
    # One process for each job of its own would load the 4 ranks' imports thrice.
    work(
        4,
        f"table_wise:{path[1]}:0:{path[2]}",
        f"column_wise:{path[1]}:0:{path[3]}",
        f"column_wise:{path[1]}:2:{path[4]}",
    )
    work(2, f"table_wise:{path[2]}:0:{path[5]}", f"table_wise:{path[4]}:0:{path[6]}")
    return root


@pytest.fixture(scope="module")
def states(folder: Path) -> dict[int, dict[str, torch.Tensor]]:
    return {number: state(folder / f"step-{number:012d}") for number in range(1, 7)}


def assert_same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> None:
    assert left.keys() == right.keys()
    assert [name for name in left if not torch.equal(left[name], right[name])] == []


def test_the_whole_state_is_stored_once_whoever_held_it(states: dict) -> None:
    # 3 tables, each with one momentum of all its 256 columns; 2 dense parameters of each of 3 layers with
    # sum and step each: 3 + 3 + 6 + 12.
    assert len(states[1]) == 24
    assert states[1]["model/tables.embedding_bags.table_0.weight"].shape == (50, 256)
    assert states[1][f"{MOMENTUM}/columns_0_256"].shape == (50,)
    assert (states[1][f"{MOMENTUM}/columns_0_256"] > 0).any()  # 3 steps of training are in it


def test_two_ranks_to_four_and_back_change_no_bit(states: dict) -> None:
    assert_same(states[1], states[2])
    assert_same(states[2], states[5])


def test_tables_to_columns_keeps_weights_and_gives_each_shard_the_row_state(states: dict) -> None:
    tables, columns = states[1], states[3]
    weights = [name for name in tables if name.startswith("model/")]
    assert_same({name: tables[name] for name in weights}, {name: columns[name] for name in weights})
    halves = [columns[f"{MOMENTUM}/columns_{part}"] for part in ("0_128", "128_256")]
    assert all(torch.equal(half, tables[f"{MOMENTUM}/columns_0_256"]) for half in halves)


def test_columns_to_tables_averages_the_row_states(states: dict) -> None:
    columns, tables = states[4], states[6]
    first, second = (columns[f"{MOMENTUM}/columns_{part}"] for part in ("0_128", "128_256"))
    assert not torch.equal(first, second)  # two steps of training by columns made them differ
    torch.testing.assert_close(tables[f"{MOMENTUM}/columns_0_256"], (first + second) / 2)


def test_the_loaded_model_predicts_the_same_wherever_it_runs(folder: Path) -> None:
    # Summed in another order by column shards, hence a tolerance: float32 has 1.2e-7 per operation.
    name = folder / "step-000000000001"
    by_tables = torch.load(f"{name}.4.table_wise.pt")
    by_columns = torch.load(f"{name}.4.column_wise.pt")
    assert by_tables.std() > 0.01
    torch.testing.assert_close(by_columns, by_tables, rtol=1e-5, atol=1e-6)
    four_made = torch.load(f"{folder / 'step-000000000002'}.2.table_wise.pt")
    torch.testing.assert_close(four_made, by_tables, rtol=1e-5, atol=1e-6)
