"""A checkpoint knows no ranks: the same global state under 2 and 4 ranks, by tables and by columns."""

import os
import subprocess
import sys
import warnings
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
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is disabled")  # as meant
        dcp.load(tensors, storage_reader=reader, no_dist=True)
    return tensors


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints of these jobs; few torchruns, because each imports torch in every rank."""
    root = tmp_path_factory.mktemp("checkpoints")
    path = {number: root / f"step-{number:012d}" for number in range(1, 9)}
    work(2, f"table_wise:-:3:{path[1]}")
    work(
        4,
        f"table_wise:{path[1]}:0:{path[2]}",
        f"column_wise:{path[1]}:0:{path[3]}",
        f"column_wise:{path[2]}:2:{path[4]}",
        f"table_wise/2:{path[1]}:0:{path[5]}",
        f"table_wise/2:{path[1]}:2:{path[8]}",
    )
    work(
        2,
        f"table_wise:{path[2]}:0:{path[6]}",
        f"table_wise:{path[4]}:0:{path[7]}",
        f"table_wise:{path[5]}:0:-",
    )
    return root


@pytest.fixture(scope="module")
def states(folder: Path) -> dict[int, dict[str, torch.Tensor]]:
    return {number: state(folder / f"step-{number:012d}") for number in range(1, 9)}


def assert_same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> None:
    assert left.keys() == right.keys()
    assert [name for name in left if not torch.equal(left[name], right[name])] == []


def test_the_whole_state_is_stored_once_whoever_held_it(states: dict) -> None:
    # 3 tables, each with one momentum of all its 256 columns; weight and bias of 3 dense layers, each with
    # sum and step: 3 + 3 + 6 + 12.
    assert len(states[1]) == 24
    assert states[1]["model/tables.embedding_bags.table_0.weight"].shape == (50, 256)
    assert states[1][f"{MOMENTUM}/columns_0_256"].shape == (50,)
    assert (states[1][f"{MOMENTUM}/columns_0_256"] > 0).any()  # 3 steps of training are in it


def test_two_ranks_to_four_and_back_change_no_bit(states: dict) -> None:
    assert_same(states[1], states[2])
    assert_same(states[2], states[6])


def test_one_copy_of_the_tables_to_two_replicas_changes_no_bit(states: dict) -> None:
    # The average of two equal replicas is what both were: (x + x) / 2 is exact.
    assert_same(states[1], states[5])


def test_replicas_that_are_averaged_every_step_are_equal_and_learn(folder: Path, states: dict) -> None:
    held = torch.load(folder / "step-000000000008.held")
    for table in range(3):
        name = f"model/tables.embedding_bags.table_{table}.weight"
        replicas = [tables[name] for tables in held if name in tables]
        assert len(replicas) == 2
        assert torch.equal(replicas[0], replicas[1])
        assert torch.equal(replicas[0], states[8][name])
        assert not torch.equal(replicas[0], states[1][name])  # two steps of training


def test_tables_to_columns_keeps_weights_and_gives_each_shard_the_row_state(states: dict) -> None:
    tables, columns = states[1], states[3]
    weights = [name for name in tables if name.startswith("model/")]
    assert_same({name: tables[name] for name in weights}, {name: columns[name] for name in weights})
    halves = [columns[f"{MOMENTUM}/columns_{part}"] for part in ("0_128", "128_256")]
    assert all(torch.equal(half, tables[f"{MOMENTUM}/columns_0_256"]) for half in halves)


def test_columns_to_tables_averages_the_row_states(states: dict) -> None:
    columns, tables = states[4], states[7]
    first, second = (columns[f"{MOMENTUM}/columns_{part}"] for part in ("0_128", "128_256"))
    assert not torch.equal(first, second)  # two steps of training by columns made them differ
    torch.testing.assert_close(tables[f"{MOMENTUM}/columns_0_256"], (first + second) / 2)


def test_the_loaded_model_predicts_the_same_wherever_it_runs(folder: Path) -> None:
    # Checkpoints 1, 2 and 5 hold the same state. Column shards sum in another order, hence a tolerance:
    # float32 has 1.2e-7 per operation.
    one = folder / "step-000000000001"
    same = [f"{one}.table_wise.4", f"{one}.column_wise.4", f"{one}.table_wise_by_2.4"]
    same += [f"{folder}/step-00000000000{number}.table_wise.2" for number in (2, 5)]
    first, *others = [torch.load(f"{name}.pt") for name in same]
    assert first.std() > 0.01
    for name, other in zip(same[1:], others, strict=True):
        torch.testing.assert_close(
            other, first, rtol=1e-5, atol=1e-6, msg=lambda text, n=name: f"{n}: {text}"
        )
