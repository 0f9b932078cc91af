"""All edits by name, and reading them from text."""

from __future__ import annotations

import math
from collections.abc import Callable

from traceinsight.base.errors import UsageError
from traceinsight.base.hardware import NETWORKS
from traceinsight.replay.edits.balance import Balance
from traceinsight.replay.edits.edit import Edit
from traceinsight.replay.edits.host import Fuse, NoHostStall, NoInputWait
from traceinsight.replay.edits.more_nodes import MoreNodes
from traceinsight.replay.edits.network import FasterNetwork, LargerBatch, Overlap
from traceinsight.replay.edits.payload import QCOMM_DTYPES, NarrowerEmbeddings, QuantizedComms
from traceinsight.replay.edits.ranks import NoStraggler
from traceinsight.replay.edits.sharding_groups import ShardingGroups

_PHASES = ("sparse_data_dist", "forward", "backward")


def _number(text: str) -> float:
    """Not a number where the text is none, so that every limit refuses it in its own words."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _factor(text: str) -> float:
    value = _number(text)
    if not 1 < value <= 64:
        raise ValueError("a number above 1, at most 64")
    return value


def _choice(*allowed: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text not in allowed:
            raise ValueError("one of " + ", ".join(allowed))
        return text

    return parse


def _network(text: str) -> str:
    low, high = NODE_GBPS
    if text not in NETWORKS and not low <= _number(text) <= high:
        raise ValueError(f"GB/s per node from {low:g} to {high:,}, or one of " + ", ".join(NETWORKS))
    return text


def _ranks(text: str) -> tuple[int, ...]:
    parts = text.split("+")
    if not all(_is_count(part) for part in parts):
        raise ValueError(f"a rank from 0 to {MAX_COUNT}, or several joined by +, such as 2+6+7")
    return tuple(sorted({int(part) for part in parts}))


def _groups(text: str) -> ShardingGroups:
    size, *settings = text.split(",")
    if len(settings) > 1 or not all(one.startswith("sync=") for one in settings):
        raise ValueError("<group size> or <group size>,sync=<n>")
    every = settings[0].removeprefix("sync=") if settings else "1"
    return ShardingGroups(_count("group size", size, 2), _count("sync", every, 1))


def _count(field: str, text: str, least: int) -> int:
    if not _is_count(text) or int(text) < least:
        raise ValueError(f"<group size>[,sync=<n>] with {field} from {least} to {MAX_COUNT}, not {text!r}")
    return int(text)


def _whole(text: str) -> int:
    if not _is_count(text) or int(text) < 1:
        raise ValueError(f"a number of nodes from 1 to {MAX_COUNT}")
    return int(text)


def _is_count(text: str) -> bool:
    """Its length first: turning thousands of digits into a number is refused by Python itself."""
    return text.isdecimal() and len(text) <= len(str(MAX_COUNT)) and int(text) <= MAX_COUNT


MAX_COUNT = 100_000
"""More ranks, or steps between two syncs, than any job has."""

NODE_GBPS = (0.001, 1_000_000)
"""From a bad modem line to far beyond any adapter; outside of it the value has the wrong unit."""


# name -> (example value or "" for none, how to make the edit from the value)
EDITS: dict[str, tuple[str, Callable[[str], Edit]]] = {
    "qcomms": ("fp8", lambda text: QuantizedComms(_choice(*QCOMM_DTYPES)(text))),
    "narrow": ("2", lambda text: NarrowerEmbeddings(_factor(text))),
    "balance": ("", lambda _: Balance()),
    "no-straggler": ("2", lambda text: NoStraggler(_ranks(text))),
    "no-host-stall": ("", lambda _: NoHostStall()),
    "no-input-wait": ("", lambda _: NoInputWait()),
    "fuse": ("", lambda _: Fuse()),
    "overlap": ("sparse_data_dist", lambda text: Overlap(_choice(*_PHASES)(text))),
    "2d": ("8", _groups),
    "nodes": ("4", lambda text: MoreNodes(_whole(text))),
    "network": ("efa_p5", lambda text: FasterNetwork(_network(text))),
    "batch": ("2", lambda text: LargerBatch(_factor(text))),
}


def edit_lines() -> list[str]:
    """``name=example  first sentence of its documentation``, one per edit."""
    lines = []
    for name, (example, make) in EDITS.items():
        written = f"{name}={example}" if example else name
        said = (type(make(example)).__doc__ or "").split("\n")[0].partition(": ")[2]
        lines.append(f"{written:<28}{said}")
    return lines


def parse_edit(text: str) -> Edit:
    """Read ``name`` or ``name=value``.

    Raises:
        UsageError: Unknown name, or a value the edit cannot take.

    """
    name, _, value = text.partition("=")
    if name not in EDITS:
        raise UsageError(
            f"there is no edit {name!r}.", what_to_do="Choose from: " + ", ".join(sorted(EDITS)) + "."
        )
    example, make = EDITS[name]
    if bool(value) != bool(example):
        written = f"{name}={example}" if example else name
        raise UsageError(f"edit {text!r} is incomplete or has too much.", what_to_do=f"Write {written}.")
    try:
        return make(value)
    except ValueError as error:
        raise UsageError(f"edit {text!r}: the value must be {error}.") from None
