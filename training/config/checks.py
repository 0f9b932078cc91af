"""What a field may be, declared with it, and how it says that a value cannot be used."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any, Protocol

MANY = 1_000_000_000
"""More steps, bytes or milliseconds than any run needs: what is larger is a slip of the keyboard."""


class ConfigError(ValueError):
    """A configuration value that cannot be used; the text names the field and what it may be."""


class Allowed(Protocol):
    """What a field may be."""

    @property
    def text(self) -> str:
        """Read after "it must be"."""

    def admits(self, value: Any) -> bool:
        """Whether ``value`` is allowed."""


@dataclass(frozen=True)
class Between:
    """Finite numbers from ``low`` (itself not, if ``above``) to ``high``."""

    low: float
    high: float
    above: bool = False

    @property
    def text(self) -> str:
        """Name both bounds."""
        if self.above:
            return f"above {self.low:g}, at most {_short(self.high)}"
        if self.high <= 10:
            return f"between {self.low:g} and {self.high:g}"
        start = "0 or more" if self.low == 0 else f"at least {self.low:g}"
        return f"{start}, at most {_short(self.high)}"

    def admits(self, value: float) -> bool:
        """Whether the number is finite and inside."""
        inside = self.low < value if self.above else self.low <= value
        return math.isfinite(value) and inside and value <= self.high


@dataclass(frozen=True)
class OneOf:
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def text(self) -> str:
        """List them."""
        return "one of " + ", ".join(self.words)

    def admits(self, value: str) -> bool:
        """Whether ``value`` is one of them."""
        return value in self.words


def number(default: float, low: float, high: float = MANY, *, above: bool = False) -> Any:
    """Return a field for a number, whole if its annotation says int."""
    return field(default=default, metadata={"allowed": Between(low, high, above)})


def word(default: str, words: tuple[str, ...]) -> Any:
    """Return a field for one of ``words``."""
    return field(default=default, metadata={"allowed": OneOf(words)})


def check_fields(owner: Any, section: str = "") -> None:
    """Raise ConfigError for the first field of the dataclass ``owner`` that is not what it may be."""
    for part in dataclasses.fields(owner):
        allowed: Allowed | None = part.metadata.get("allowed")
        if allowed is not None:
            value = getattr(owner, part.name)
            name = f"{section}.{part.name}" if section else part.name
            require(allowed.admits(value), name, value, allowed.text)


def require(ok: bool, name: str, value: object, allowed: str) -> None:
    """Raise ConfigError unless ``ok``."""
    if not ok:
        raise ConfigError(f"{name} = {value!r} is not allowed: it must be {allowed}")


def _short(value: float) -> str:
    return f"{value:,.0f}" if value < 1e15 else f"{value:g}"
