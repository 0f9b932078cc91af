"""What a run is made of: frozen, validated configuration.

Every field is checked where it is declared, and a wrong value names the field and the values that are
allowed, because a job that starts on 64 GPUs with a misspelt option is an expensive way to learn about it.
"""

from __future__ import annotations

import dataclasses
import types
import typing
from dataclasses import dataclass, field

FAULT_KINDS = ("none", "late_rank")
DEVICES = ("cpu",)
SHARDINGS = ("table_wise", "column_wise")


class ConfigError(ValueError):
    """A configuration value that cannot be used; the text names the field and what it may be."""


def _require(ok: bool, name: str, value: object, allowed: str) -> None:
    if not ok:
        raise ConfigError(f"{name} = {value!r} is not allowed: it must be {allowed}")


def _choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    _require(value in choices, name, value, "one of " + ", ".join(choices))


@dataclass(frozen=True)
class ModelConfig:
    """Embedding tables, interaction and dense layers."""

    tables: int = 8
    rows: int = 20_000
    """Rows of each table."""
    dim: int = 64
    """Values per row; FBGEMM wants a multiple of 4."""
    dense_features: int = 13
    hidden: tuple[int, ...] = (64, 64)
    """Widths of the dense layers behind the interaction."""
    sharding: str = "table_wise"

    def __post_init__(self) -> None:
        _require(self.tables >= 1, "model.tables", self.tables, "at least 1")
        _require(self.rows >= 2, "model.rows", self.rows, "at least 2")
        _require(self.dim >= 4 and self.dim % 4 == 0, "model.dim", self.dim, "a positive multiple of 4")
        _require(self.dense_features >= 1, "model.dense_features", self.dense_features, "at least 1")
        _require(
            len(self.hidden) >= 1 and min(self.hidden, default=0) >= 1,
            "model.hidden",
            self.hidden,
            "one or more widths of at least 1",
        )
        _choice("model.sharding", self.sharding, SHARDINGS)


@dataclass(frozen=True)
class DataConfig:
    """The synthetic click stream."""

    batch_per_rank: int = 256
    pooling: int = 8
    """Mean number of ids per example and table."""
    zipf_exponent: float = 1.05
    """0 draws ids evenly; 1 and above makes a few ids take most lookups."""
    seed: int = 7

    def __post_init__(self) -> None:
        _require(self.batch_per_rank >= 1, "data.batch_per_rank", self.batch_per_rank, "at least 1")
        _require(self.pooling >= 1, "data.pooling", self.pooling, "at least 1")
        _require(0 <= self.zipf_exponent <= 4, "data.zipf_exponent", self.zipf_exponent, "between 0 and 4")


@dataclass(frozen=True)
class EmulationConfig:
    """Time an accelerator would need for the dense part, slept instead of computed.

    Ranks that share the cores of one machine would otherwise slow each other down, and a trace of that shows
    the machine and not the job. 0 on a real accelerator.
    """

    forward_ms: float = 0.0
    """Milliseconds slept per forward, spread evenly over the dense layers."""
    backward_ms: float = 0.0
    """Milliseconds slept per backward, spread evenly over the dense layers."""

    def __post_init__(self) -> None:
        _require(self.forward_ms >= 0, "emulation.forward_ms", self.forward_ms, "0 or more milliseconds")
        _require(self.backward_ms >= 0, "emulation.backward_ms", self.backward_ms, "0 or more milliseconds")


@dataclass(frozen=True)
class FaultConfig:
    """A fault injected on purpose, whose cost is therefore known."""

    kind: str = "none"
    rank: int = 0
    delay_ms: float = 0.0
    """Milliseconds by which the rank is late in every step."""

    def __post_init__(self) -> None:
        _choice("fault.kind", self.kind, FAULT_KINDS)
        _require(self.rank >= 0, "fault.rank", self.rank, "0 or more")
        _require(self.delay_ms >= 0, "fault.delay_ms", self.delay_ms, "0 or more milliseconds")


@dataclass(frozen=True)
class LoopConfig:
    """Steps, learning rates and the profiled window."""

    steps: int = 30
    embedding_lr: float = 0.02
    dense_lr: float = 0.02
    wait: int = 10
    """Steps before the profiler is switched on."""
    warmup: int = 3
    """Steps recorded and thrown away, so that the profiler's own start-up is not in the trace."""
    active: int = 5
    """Steps that end up in the trace."""

    def __post_init__(self) -> None:
        _require(self.steps >= 1, "loop.steps", self.steps, "at least 1")
        _require(self.embedding_lr > 0, "loop.embedding_lr", self.embedding_lr, "above 0")
        _require(self.dense_lr > 0, "loop.dense_lr", self.dense_lr, "above 0")
        _require(self.wait >= 0, "loop.wait", self.wait, "0 or more")
        _require(self.warmup >= 0, "loop.warmup", self.warmup, "0 or more")
        _require(self.active >= 1, "loop.active", self.active, "at least 1")


@dataclass(frozen=True)
class CheckpointConfig:
    """Where the state of the run is kept, and how often."""

    folder: str = ""
    """Shared by all ranks. Empty: nothing is saved, and SIGTERM ends the run at once."""
    every: int = 0
    """Steps between two checkpoints; 0 saves on SIGTERM and after the last step only."""
    keep: int = 3
    """Newest checkpoints that are kept."""
    start_from: str = ""
    """A checkpoint whose state a fresh run begins with, e.g. for fine-tuning."""

    def __post_init__(self) -> None:
        _require(self.every >= 0, "checkpoint.every", self.every, "0 or more steps")
        _require(self.keep >= 1, "checkpoint.keep", self.keep, "at least 1")
        _require(
            bool(self.folder) or not self.every,
            "checkpoint.every",
            self.every,
            "0 unless checkpoint.folder is set (set the folder first)",
        )


@dataclass(frozen=True)
class Config:
    """One run."""

    name: str
    world_size: int
    device: str = "cpu"
    model: ModelConfig = field(default_factory=ModelConfig)
    data: DataConfig = field(default_factory=DataConfig)
    emulation: EmulationConfig = field(default_factory=EmulationConfig)
    fault: FaultConfig = field(default_factory=FaultConfig)
    loop: LoopConfig = field(default_factory=LoopConfig)
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)

    def __post_init__(self) -> None:
        _require(self.world_size >= 1, "world_size", self.world_size, "at least 1")
        _choice("device", self.device, DEVICES)
        _require(
            self.fault.rank < self.world_size,
            "fault.rank",
            self.fault.rank,
            f"a rank of this run, 0 to {self.world_size - 1}",
        )


def with_setting(config: Config, assignment: str) -> Config:
    """Return ``config`` with one ``section.field=value`` (or ``field=value``) replaced.

    Raises ConfigError for an unknown field (the known ones are listed) and for a value of the wrong type or
    range.
    """
    path, separator, text = assignment.partition("=")
    if not separator:
        raise ConfigError(
            f"--set {assignment!r} is not understood: write section.field=value, e.g. model.dim=32"
        )
    section, _, name = path.strip().rpartition(".")
    owner = config if not section else getattr(config, section, None)
    if not dataclasses.is_dataclass(owner) or name not in _settable(owner):
        raise ConfigError(
            f"{path.strip()} is not a field: it must be one of {', '.join(settable_fields(config))}"
        )
    kind = typing.get_type_hints(type(owner))[name]
    changed = dataclasses.replace(owner, **{name: _parse(path.strip(), text.strip(), kind)})
    return dataclasses.replace(config, **{section: changed}) if section else typing.cast(Config, changed)


def settable_fields(config: Config) -> list[str]:
    """Return every ``section.field`` that ``with_setting`` takes, in the order of declaration."""
    names = _settable(config)
    for part in dataclasses.fields(config):
        section = getattr(config, part.name)
        if dataclasses.is_dataclass(section):
            names += [f"{part.name}.{name}" for name in _settable(section)]
    return names


def _settable(owner: object) -> list[str]:
    parts = dataclasses.fields(owner)  # type: ignore[arg-type]
    return [part.name for part in parts if not dataclasses.is_dataclass(getattr(owner, part.name))]


def _parse(name: str, text: str, kind: object) -> object:
    try:
        if isinstance(kind, types.GenericAlias):
            return tuple(int(part) for part in text.split(","))
        return typing.cast(type, kind)(text)
    except ValueError:
        wanted = (
            "whole numbers joined by commas"
            if isinstance(kind, types.GenericAlias)
            else str(getattr(kind, "__name__", kind))
        )
        raise ConfigError(f"{name} = {text!r} is not allowed: it must be {wanted}") from None
