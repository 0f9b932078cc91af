"""Collective arguments of communication events, from their several spellings."""

from __future__ import annotations

import math
import re

import msgspec

from traceinsight.reading import schema
from traceinsight.reading.numbers import MAX_RANKS, to_int
from traceinsight.reading.texts import shortened
from traceinsight.trace.recording import CommArgs

_COMM_NAME = re.compile(
    r"record_param_comms$|(?:nccl|gloo|mpi|ucc):|c10d(?:_functional)?::|_c10d_functional::"
)
_MAX_LIST_TEXT = 1 << 20
MAX_ELEMENTS = 2**53
"""9 PB of bytes; up to here every count is exact in a float64, too."""


def is_comm_name(name: str) -> bool:
    """Whether events of this name carry (or may carry) a collective's tensors as their inputs."""
    return _COMM_NAME.match(name) is not None


def parse_comm_args(args: schema.Args, name: str) -> tuple[CommArgs | None, bool]:
    """The arguments, or None when the event says nothing about a collective; and whether all were possible.

    A count that cannot be (negative, or more than any tensor has) is taken for not recorded.
    """
    fields = _Fields()
    in_elements = fields.count(args.in_elements, MAX_ELEMENTS)
    dtype = _text(args.dtype)
    if args.collective is None and is_comm_name(name):
        elements, input_type = _first_inputs(args)
        in_elements = fields.count(elements, MAX_ELEMENTS) if in_elements is None else in_elements
        dtype = dtype or input_type
    parsed = CommArgs(
        collective=_text(args.collective),
        in_elements=in_elements,
        out_elements=fields.count(args.out_elements, MAX_ELEMENTS),
        dtype=dtype,
        in_split=fields.counts(args.in_split),
        out_split=fields.counts(args.out_split),
        group_name=_text(args.group_name),
        group_description=_text(args.group_description),
        group_ranks=fields.ranks(args.group_ranks),
        group_size=fields.count(args.group_size, MAX_RANKS) or None,
        sequence=to_int(args.sequence),
        peer_src=fields.peer(args.peer_src),
        peer_dst=fields.peer(args.peer_dst),
    )
    return (parsed if parsed != CommArgs() else None), fields.possible


class _Fields:
    """Checks field by field, and remembers whether all were possible."""

    def __init__(self) -> None:
        self.possible = True

    def count(self, value: object, most: int) -> int | None:
        if value is None or value == "":
            return None
        number = to_int(value)
        if number is None or not 0 <= number <= most:
            self.possible = False
            return None
        return number

    def peer(self, value: object) -> int | None:
        """-1 is how some versions write "no peer"."""
        return None if to_int(value) == -1 else self.count(value, MAX_RANKS)

    def counts(self, value: object) -> tuple[int, ...] | None:
        numbers = integer_list(value)
        if numbers is not None and not all(0 <= number <= MAX_ELEMENTS for number in numbers):
            self.possible = False
            return None
        return numbers

    def ranks(self, value: object) -> tuple[int, ...] | None:
        numbers = integer_list(value)
        if numbers is not None and not are_ranks(numbers):
            self.possible = False
            return None
        return numbers


def are_ranks(numbers: tuple[int, ...]) -> bool:
    """Whether these can be the members of a process group: each possible, and none twice."""
    return all(0 <= number < MAX_RANKS for number in numbers) and len(set(numbers)) == len(numbers)


def integer_list(value: object) -> tuple[int, ...] | None:
    """``[1, 2]`` or ``"[1, 2]"``; None for anything else, such as a list cut short by ``...``.

    An empty list is None too: PyTorch writes it for "does not apply".
    """
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _MAX_LIST_TEXT or not (text.startswith("[") and text.endswith("]")):
            return None
        value = [part for part in text[1:-1].split(",") if part.strip()]
    if not isinstance(value, list) or not value:
        return None
    numbers = [to_int(part) for part in value]
    return None if None in numbers else tuple(number for number in numbers if number is not None)


def _text(value: object) -> str | None:
    if value is None or value == "":
        return None
    if isinstance(value, str):
        return shortened(value)
    return str(value) if isinstance(value, int) else None


def _first_inputs(args: schema.Args) -> tuple[int | None, str | None]:
    """Elements and type of the first input: a tensor ``[2, 3]``, or tensors ``[[2, 3], [4]]``, summed."""
    dims = _decoded(args.input_dims) or _decoded(args.old_input_dims)
    types = _decoded(args.input_type)
    first_type = types[0] if isinstance(types, list) and types else None
    if not isinstance(dims, list) or not dims:
        return None, _text(first_type)
    tensors = dims[0] if dims[0] and isinstance(dims[0], list) and isinstance(dims[0][0], list) else [dims[0]]
    if first_type is not None and not isinstance(dims[0], list):
        return None, _text(first_type)
    sizes = [_product(tensor) for tensor in tensors]
    if not tensors or None in sizes or tensors == [[]]:
        return None, _text(first_type)
    return sum(size for size in sizes if size is not None), _text(first_type)


def _product(dims: object) -> int | None:
    if not isinstance(dims, list) or not all(isinstance(size, int) and size >= 0 for size in dims):
        return None
    return to_int(math.prod(dims)) if len(dims) <= 64 else None


def _decoded(raw: msgspec.Raw) -> object:
    text = bytes(raw)
    if not text:
        return None
    try:
        return schema.any_value.decode(text)
    except (ValueError, RecursionError):
        return None
