"""Whatever a job hands over, as something JSON can hold: a value that it cannot costs that value only."""

from __future__ import annotations

import dataclasses
import enum
import math
import numbers
import os
from collections.abc import Callable, Mapping
from typing import Any

import torch

_DEEPEST = 40
"""Levels of nesting: more is a structure that contains itself."""
_INTEGER_BITS = 64
"""Wider integers are read back as floats by most readers of JSON, if at all."""

Report = Callable[[str, str], None]
"""Called with the place of a value that was left out (``config.loss``) and what it is."""


def keep(value: Any) -> Any:
    """Return a number that stays what it is now; raises TypeError for anything else.

    A tensor is cloned and not read: reading it would make the host wait for the device, and the original may
    be written over by the next step. Subclasses are refused: reading a DTensor can be a collective, which one
    rank alone must not begin.
    """
    if value is None or type(value) in (float, int):
        return value
    if isinstance(value, torch.Tensor):
        if value.numel() != 1:
            raise TypeError(f"a tensor of {value.numel():,} values, not a number")
        if type(value) not in (torch.Tensor, torch.nn.Parameter):
            raise TypeError(f"of type {type(value).__name__}, not a number or a plain tensor of one")
        return value.detach().clone()
    if isinstance(value, numbers.Real):
        return int(value) if isinstance(value, numbers.Integral) else float(value)
    if getattr(value, "size", None) == 1 and isinstance(number := value.item(), float | int):
        return number  # of an array of NumPy
    raise TypeError(f"of type {type(value).__name__}, not a number")


def as_json(value: Any, place: str, report: Report, depth: int = 0) -> Any:
    """Return ``value`` made of JSON types; what cannot be told becomes None and is reported. Never raises.

    Tensors and arrays of one element become numbers, paths, dtypes and devices text, dataclasses and
    mappings objects, tuples and sets lists.
    """
    try:
        if depth > _DEEPEST:
            raise TypeError(f"nested in more than {_DEEPEST} levels")
        if isinstance(value, Mapping):
            return {
                str(name): as_json(part, f"{place}.{name}", report, depth + 1) for name, part in value.items()
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [as_json(part, f"{place}[{index}]", report, depth + 1) for index, part in enumerate(value)]
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            parts = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
            return as_json(parts, place, report, depth + 1)
        return _scalar(value)
    except Exception as error:  # a mapping, an array or a tensor may fail in any way when it is read
        report(place, str(error) or type(error).__name__)
        return None


def _scalar(value: Any) -> Any:
    if isinstance(value, enum.Enum):
        return _scalar(value.value)
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, torch.dtype | torch.device):
        return str(value)
    if isinstance(value, int):
        if value.bit_length() > _INTEGER_BITS:
            raise TypeError(f"an integer of {value.bit_length():,} bits")
        return int(value)
    if not isinstance(value, torch.Tensor | numbers.Real) and not hasattr(value, "size"):
        raise TypeError(f"of type {type(value).__name__}, which JSON has no word for")
    number = read(value)
    if not math.isfinite(number):
        raise TypeError(f"{number}, which JSON has no word for")
    return number


def read(value: Any) -> Any:
    """Return the number in what ``keep`` accepts; of a tensor it waits for the device."""
    number = keep(value)
    return number.item() if isinstance(number, torch.Tensor) else number
