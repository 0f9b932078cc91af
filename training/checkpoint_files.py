"""The folder of checkpoints: complete ones have a name, anything else is rubbish of a killed run.

A checkpoint is written under a hidden name, checked in by a list of its files with their checksums, and only
then renamed. Renaming is atomic, so a reader sees a whole checkpoint or none.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CARD = "checkpoint.json"
"""Step, world size, configuration and the files with bytes and CRC-32: written last."""
SCHEMA_VERSION = 1
_PREFIX = "step-"
_TEMPORARY = ".saving-"
_DOOMED = ".deleting-"
_DAMAGED = ".damaged"
_TRIES = 10_000
"""Names tried for what is moved aside."""
_CHUNK_BYTES = 1 << 24


@dataclass(frozen=True)
class FileFacts:
    """Length and CRC-32 of a file."""

    size_bytes: int
    crc32: int


def measure(path: Path) -> FileFacts:
    """Read a file to its end; raises OSError."""
    size, crc = 0, 0
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            size, crc = size + len(chunk), zlib.crc32(chunk, crc)
    return FileFacts(size, crc)


def checkpoints(folder: Path) -> list[Path]:
    """Return the published checkpoints, newest (highest step) first."""
    found = [path for path in folder.glob(f"{_PREFIX}*") if path.name.removeprefix(_PREFIX).isdigit()]
    return sorted(found, key=step_of, reverse=True)


def step_of(checkpoint: Path) -> int:
    """Return how many steps were done when it was saved."""
    return int(checkpoint.name.removeprefix(_PREFIX))


def published(folder: Path, step: int) -> Path:
    """Return the path of the checkpoint of ``step`` (twelve digits, so that a listing sorts)."""
    return folder / f"{_PREFIX}{step:012d}"


def prepare(folder: Path, step: int) -> Path:
    """Return an empty folder to write the checkpoint of ``step`` into; rubbish of killed runs is removed."""
    folder.mkdir(parents=True, exist_ok=True)
    for rubbish in [*folder.glob(f"{_TEMPORARY}*"), *folder.glob(f"{_DOOMED}*")]:
        shutil.rmtree(rubbish, ignore_errors=True)
    temporary = folder / f"{_TEMPORARY}{step:012d}"
    temporary.mkdir()
    return temporary


def abandon(temporary: Path) -> None:
    """Remove an unfinished checkpoint, as far as possible: its disk may be the broken part."""
    shutil.rmtree(temporary, ignore_errors=True)


def free_space(folder: Path) -> str:
    """Return how much the disk of ``folder`` has left, for a message (a writer's error is often cryptic)."""
    try:
        return f"{shutil.disk_usage(folder).free / 1e6:,.0f} MB"
    except OSError:
        return "an unknown number of MB"


def publish(temporary: Path, folder: Path, step: int, card: dict[str, Any]) -> Path:
    """Write the card, make everything durable, and give the checkpoint its name; raises OSError."""
    text = json.dumps({"schema_version": SCHEMA_VERSION, "step": step, **card}, indent=1)
    with (temporary / CARD).open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    _sync_folder(temporary)
    final = published(folder, step)
    if final.exists():  # saved by a run that went further and was then resumed from before
        _remove(final)
    temporary.rename(final)
    _sync_folder(folder)
    return final


def remove(checkpoint: Path) -> None:
    """Remove a checkpoint; one that cannot be removed is one too many and does no harm."""
    with contextlib.suppress(OSError):
        _remove(checkpoint)


def set_aside(checkpoint: Path) -> Path:
    """Give a damaged checkpoint a name under which it is none, and return that; raises OSError."""
    names = [checkpoint.with_name(f"{checkpoint.name}{_DAMAGED}{n or ''}") for n in range(_TRIES)]
    free = next(name for name in names if not name.exists())
    return checkpoint.rename(free)


def retire(folder: Path) -> Path | None:
    """Move all checkpoints of ``folder`` into a new folder in it and return that; None without any.

    Raises OSError.
    """
    found = checkpoints(folder)
    if not found:
        return None
    earlier = next(path for n in range(1, _TRIES) if not (path := folder / f"earlier-{n}").exists())
    earlier.mkdir()
    for checkpoint in reversed(found):  # oldest first: a kill in between leaves the newest in place
        checkpoint.rename(earlier / checkpoint.name)
    return earlier


def not_one(path: Path) -> str | None:
    """Return why ``path`` is no checkpoint at all, and what to name instead; None for one, whole or not."""
    if not path.exists():
        return "there is nothing of that name"
    if (path / CARD).exists() or path.name.startswith(_PREFIX):
        return None
    inside = checkpoints(path)
    return (
        f"that is a folder of checkpoints: name one, such as {inside[0]}" if inside else f"it holds no {CARD}"
    )


def _remove(checkpoint: Path) -> None:
    # Renamed first: a kill in the middle must not leave half a checkpoint under a good name.
    doomed = checkpoint.with_name(f"{_DOOMED}{checkpoint.name}")
    checkpoint.rename(doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def _sync_folder(folder: Path) -> None:
    """Make names in ``folder`` durable, where the system can do that."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError:
        pass  # some network file systems refuse to sync a folder; their renames are durable or nothing is
    finally:
        os.close(descriptor)


def read_card(checkpoint: Path) -> dict[str, Any]:
    """Return the card; raises ValueError saying what is wrong with it."""
    try:
        card = json.loads((checkpoint / CARD).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"its {CARD} cannot be read: {error}") from None
    if not isinstance(card, dict) or not isinstance(card.get("files"), dict):
        raise ValueError(f"its {CARD} does not list any files")
    if card.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(f"its format is {card.get('schema_version')}, this program reads {SCHEMA_VERSION}")
    return card


def damage(checkpoint: Path, files: dict[str, Any]) -> str | None:
    """Return what is wrong with the first damaged one of ``files`` (as in the card), or None."""
    for name, facts in files.items():
        try:
            found = measure(checkpoint / name)
        except OSError as error:
            return f"{name} cannot be read: {error.strerror}"
        if found.size_bytes != facts["bytes"]:
            return f"{name} has {found.size_bytes} bytes instead of {facts['bytes']}"
        if found.crc32 != facts["crc32"]:
            return f"{name} has another checksum than when it was saved"
    return None
