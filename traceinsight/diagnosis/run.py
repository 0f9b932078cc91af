"""Which run was analysed, and how good the data is."""

from __future__ import annotations

from typing import Literal

import msgspec


class Struct(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all documents: immutable, fields by name only."""


class Generator(Struct, frozen=True):
    """The program that wrote the document."""

    name: str
    version: str


class DroppedStep(Struct, frozen=True):
    """A captured step that is left out of every number, and why."""

    step: int
    reason: str


class OtherRun(Struct, frozen=True):
    """Another run found among the given files; not analysed (pick it with ``--run N``)."""

    index: int  # what to give to --run; 1 is the oldest
    files: list[str]
    ranks: list[int | None]
    start: str  # start of its time window


class Run(Struct, frozen=True):
    """The analysed run.

    ``ranks`` are the ranks whose traces were read, ``missing_ranks`` those of the world whose were not.
    ``steps`` are the steady-state steps every number rests on; ``step_source`` says how steps were found.
    """

    world_size: int | None
    ranks: list[int]
    missing_ranks: list[int]
    device: str | None  # GPU name, "CPU", or None when unknown
    backend: str | None
    steps: list[int]
    dropped_steps: list[DroppedStep]
    other_runs: list[OtherRun]
    step_source: str
    files: list[str]
    quantized_comms: list[str] = []  # number formats on the wire, from TorchRec's encoder annotations
    simulated: bool = False
    batch_per_rank: int | None = None  # examples per step of one rank, from the run manifest
    sharding_group_size: int | None = None  # ranks that share one copy of the tables (2D), from the manifest


class DataQuality(Struct, frozen=True):
    """One thing to know about the data. ``error``: data was lost; ``warning``: a number may be affected."""

    severity: Literal["info", "warning", "error"]
    rank: int | None
    file: str | None
    code: str
    message: str
    count: int | None
