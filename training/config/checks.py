"""How a field says that its value cannot be used."""

from __future__ import annotations


class ConfigError(ValueError):
    """A configuration value that cannot be used; the text names the field and what it may be."""


def require(ok: bool, name: str, value: object, allowed: str) -> None:
    """Raise ConfigError unless ``ok``."""
    if not ok:
        raise ConfigError(f"{name} = {value!r} is not allowed: it must be {allowed}")


def choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Raise ConfigError unless ``value`` is one of ``choices``."""
    require(value in choices, name, value, "one of " + ", ".join(choices))
