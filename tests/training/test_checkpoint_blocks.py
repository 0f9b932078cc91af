"""Row state under other column shards, by arithmetic."""

import pytest
import torch

from training.checkpoint_blocks import Blocks, CheckpointError, as_entry, conversion, row_state

KEY = "optimizer/table.weight/momentum1"
ROWS = 3


def stored(**values: list[float]) -> dict[str, torch.Tensor]:
    return {f"{KEY}/{columns}": torch.tensor(row) for columns, row in values.items()}


def convert(columns: str, state: dict[str, torch.Tensor]) -> list[float]:
    """What a run with shard ``columns`` of all rows gets from ``state``."""
    target = Blocks((ROWS,), [((0,), torch.full((ROWS,), -1.0))])
    reads: dict[str, Blocks] = {}
    made = conversion(f"{KEY}/{columns}", target, state, reads)
    assert made is not None
    for name, source in reads.items():  # what the load would do
        for offsets, part in source.parts:
            part.copy_(state[name][offsets[0] : offsets[0] + len(part)])
    made.apply()
    return target.parts[0][1].tolist()


def test_joined_shards_are_averaged_by_their_width() -> None:
    # (12 columns x 1 + 4 columns x 5) / 16 = 2, and so on.
    state = stored(columns_0_12=[1.0, 0.0, 4.0], columns_12_16=[5.0, 8.0, 4.0])
    assert convert("columns_0_16", state) == [2.0, 2.0, 4.0]


def test_split_shards_get_the_value_of_the_whole() -> None:
    state = stored(columns_0_16=[1.0, 2.0, 3.0])
    assert convert("columns_0_8", state) == [1.0, 2.0, 3.0]
    assert convert("columns_8_16", state) == [1.0, 2.0, 3.0]


def test_shifted_bounds_take_the_share_of_each() -> None:
    # Columns 4 to 12 have 4 in common with each half: (2 + 6) / 2 = 4.
    state = stored(columns_0_8=[2.0, 0.0, 1.0], columns_8_16=[6.0, 1.0, 1.0])
    assert convert("columns_4_12", state) == [4.0, 0.5, 1.0]


def test_only_the_rows_of_the_shard_are_read() -> None:
    reads: dict[str, Blocks] = {}
    target = Blocks((ROWS,), [((1,), torch.empty(2))])
    conversion(f"{KEY}/columns_0_8", target, stored(columns_0_16=[1.0, 2.0, 3.0]), reads)
    ((name, source),) = reads.items()
    assert name == f"{KEY}/columns_0_16"
    assert [(offsets, tuple(part.shape)) for offsets, part in source.parts] == [((1,), (2,))]


@pytest.mark.parametrize(
    ("columns", "state"),
    [
        ("columns_0_16", stored(columns_0_12=[1.0])),  # 4 columns are missing
        ("columns_0_16", {"optimizer/other.weight/momentum1/columns_0_16": torch.ones(1)}),
        ("step", stored(columns_0_16=[1.0])),
    ],
)
def test_what_the_checkpoint_does_not_cover_is_not_made_up(columns: str, state: dict) -> None:
    assert conversion(f"{KEY}/{columns}", Blocks((ROWS,)), state, {}) is None


def test_row_state_is_named_by_the_columns_of_its_weights() -> None:
    # A rank with the two outer ones of four column shards of 2 rows. TorchRec puts the state of shard n at
    # n x 2 and lists a rank's shards in any order.
    weight = Blocks((2, 16), [((0, 12), torch.empty(2, 4)), ((0, 0), torch.empty(2, 4))])
    first, last = torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0])
    entries = row_state(KEY, weight, Blocks((8,), [((0,), first), ((6,), last)]))
    assert entries == {
        f"{KEY}/columns_0_4": Blocks((2,), [((0,), first)]),
        f"{KEY}/columns_12_16": Blocks((2,), [((0,), last)]),
    }


def test_row_shards_of_a_table_are_parts_of_one_entry() -> None:
    weight = Blocks((5, 4), [((3, 0), torch.empty(2, 4))])
    values = torch.tensor([1.0, 2.0])
    assert row_state(KEY, weight, Blocks((5,), [((3,), values)])) == {
        f"{KEY}/columns_0_4": Blocks((5,), [((3,), values)])
    }


def test_state_of_an_unknown_kind_is_refused_and_not_left_out() -> None:
    with pytest.raises(CheckpointError, match="cannot store a float"):
        as_entry(0.5)
