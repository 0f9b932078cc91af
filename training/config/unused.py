"""Values that were asked for and would do nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable

from training.config.checks import ConfigError
from training.config.run import Config

OF_FAULTS = {
    "rank": ("late_rank", "slow_input", "host_sync", "tiny_kernels"),
    "delay_ms": ("late_rank", "slow_input", "host_sync"),
    "table": ("hot_partition",),
    "partition": ("hot_partition",),
    "share": ("hot_partition",),
    "count": ("host_sync", "tiny_kernels"),
    "link_mbit": ("slow_link",),
}
"""Field of ``fault`` -> the kinds of fault that look at it."""

NEEDS: dict[str, tuple[str, Callable[[Config], bool]]] = {
    "network": ("device = cuda", lambda run: run.device == "cuda"),
    "model.transformer_layers": (
        "model.interaction = transformer",
        lambda run: run.model.interaction == "transformer",
    ),
    "data.prefetch": ("data.workers above 0", lambda run: run.data.workers > 0),
    "sharding.placement": ("sharding.partitions", lambda run: run.sharding.partitions > 0),
    "replicas.topology": ("replicas.group_size", lambda run: run.replicas.group_size > 0),
    "replicas.sync_interval": ("replicas.group_size", lambda run: run.replicas.group_size > 0),
    "dense.compile_backend": ("dense.compile = true", lambda run: run.dense.compile),
    "checkpoint.keep": ("checkpoint.folder", lambda run: bool(run.checkpoint.folder)),
    "checkpoint.resume": ("checkpoint.folder", lambda run: bool(run.checkpoint.folder)),
} | {
    f"fault.{name}": (f"fault.kind = {' or '.join(kinds)}", lambda run, kinds=kinds: run.fault.kind in kinds)
    for name, kinds in OF_FAULTS.items()
}
"""Field -> (what it does nothing without, whether a run has that)."""


def refuse_unused(config: Config, given: Iterable[str]) -> None:
    """Raise ConfigError for the first of the ``given`` fields that does nothing in ``config``.

    Only what was asked for is judged: a recipe whose fault is switched off keeps the values of its fault. A
    field set to its default asks for nothing.
    """
    for path in given:
        needs, has = NEEDS.get(path, ("", lambda _run: True))
        value = value_of(config, path)
        if not has(config) and value != default_of(config, path):
            raise ConfigError(f"{path} = {value!r} would do nothing: it needs {needs}")


def value_of(config: Config, path: str) -> object:
    """Return what ``config`` has in the field ``section.field`` or ``field``."""
    section, _, name = path.rpartition(".")
    return getattr(getattr(config, section) if section else config, name)


def default_of(config: Config, path: str) -> object:
    """Return the field's default; ``dataclasses.MISSING`` where there is none."""
    section, _, name = path.rpartition(".")
    owner = getattr(config, section) if section else config
    return next(part.default for part in dataclasses.fields(owner) if part.name == name)
