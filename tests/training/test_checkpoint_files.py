"""The folder of checkpoints: what counts as one, what is removed, and which damage is noticed."""

import json
from pathlib import Path

import pytest

from training import checkpoint_files as files


def publish(folder: Path, step: int, content: bytes = b"0123456789") -> Path:
    temporary = files.prepare(folder, step)
    (temporary / "__0_0.distcp").write_bytes(content)
    facts = files.measure(temporary / "__0_0.distcp")
    listed = {"__0_0.distcp": {"bytes": facts.size_bytes, "crc32": facts.crc32}}
    return files.publish(temporary, folder, step, {"files": listed})


def damage(checkpoint: Path) -> str | None:
    return files.damage(checkpoint, files.read_card(checkpoint)["files"])


def test_checkpoints_are_listed_by_step_newest_first(tmp_path: Path) -> None:
    for step in (9, 100, 20):
        publish(tmp_path, step)
    assert [files.step_of(path) for path in files.checkpoints(tmp_path)] == [100, 20, 9]


def test_what_a_killed_run_left_is_no_checkpoint_and_goes_with_the_next_save(tmp_path: Path) -> None:
    publish(tmp_path, 1)
    killed = files.prepare(tmp_path, 2)
    (killed / "__0_0.distcp").write_bytes(b"half of")
    (tmp_path / "step-of-somebody").mkdir()
    assert [files.step_of(path) for path in files.checkpoints(tmp_path)] == [1]

    publish(tmp_path, 3)
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "step-000000000001",
        "step-000000000003",
        "step-of-somebody",
    ]


def test_damaged_ones_get_a_name_under_which_they_are_none(tmp_path: Path) -> None:
    names = [files.set_aside(publish(tmp_path, 5)).name for _ in range(2)]
    assert names == ["step-000000000005.damaged", "step-000000000005.damaged1"]
    assert files.checkpoints(tmp_path) == []


def test_earlier_ones_are_retired_together(tmp_path: Path) -> None:
    assert files.retire(tmp_path) is None
    for round_number in (1, 2):
        for step in (1, 2):
            publish(tmp_path, step)
        assert files.retire(tmp_path) == tmp_path / f"earlier-{round_number}"
        assert files.checkpoints(tmp_path) == []
    for earlier in (tmp_path / "earlier-1", tmp_path / "earlier-2"):
        assert [files.step_of(path) for path in files.checkpoints(earlier)] == [2, 1]


def test_a_step_that_is_saved_again_replaces_the_earlier_one(tmp_path: Path) -> None:
    publish(tmp_path, 5, b"first")
    again = publish(tmp_path, 5, b"second")
    assert (again / "__0_0.distcp").read_bytes() == b"second"
    assert [path.name for path in tmp_path.iterdir()] == ["step-000000000005"]


def test_a_whole_checkpoint_has_no_damage(tmp_path: Path) -> None:
    assert damage(publish(tmp_path, 1)) is None


def test_a_flipped_bit_a_lost_tail_and_a_lost_file_are_noticed(tmp_path: Path) -> None:
    checkpoint = publish(tmp_path, 1)
    data = checkpoint / "__0_0.distcp"
    data.write_bytes(b"0123456788")  # one bit of the last byte
    assert damage(checkpoint) == "__0_0.distcp has another checksum than when it was saved"
    data.write_bytes(b"01234567")
    assert damage(checkpoint) == "__0_0.distcp has 8 bytes instead of 10"
    data.unlink()
    assert damage(checkpoint) == "__0_0.distcp cannot be read: No such file or directory"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "cannot be read"),
        ("[]", "does not list any files"),
        (json.dumps({"schema_version": 99, "files": {}}), "its format is 99, this program reads 1"),
    ],
)
def test_a_card_that_cannot_be_used_says_why(tmp_path: Path, text: str, message: str) -> None:
    checkpoint = publish(tmp_path, 1)
    (checkpoint / files.CARD).write_text(text)
    with pytest.raises(ValueError, match=message):
        files.read_card(checkpoint)
