"""Collective arguments of communication events, from their several spellings."""

from __future__ import annotations

import math
import re

import msgspec

from traceinsight.reading import schema
from traceinsight.reading.numbers import to_int
from traceinsight.trace.recording import CommArgs

_COMM_NAME = re.compile(
    r"record_param_comms$|(?:nccl|gloo|mpi|ucc):|c10d(?:_functional)?::|_c10d_functional::"
)
_MAX_LIST_TEXT = 1 << 20


def is_comm_name(name: str) -> bool:
    """Whether events of this name carry (or may carry) a collective's tensors as their inputs."""
    return _COMM_NAME.match(name) is not None


def parse_comm_args(args: schema.Args, name: str) -> CommArgs | None:
    """The arguments, or None when the event says nothing about a collective."""
    in_elements = to_int(args.in_elements)
    dtype = _text(args.dtype)
    if args.collective is None and is_comm_name(name):
        elements, input_type = _first_inputs(args)
        in_elements = elements if in_elements is None else in_elements
        dtype = dtype or input_type
    parsed = CommArgs(
        collective=_text(args.collective),
        in_elements=in_elements,
        out_elements=to_int(args.out_elements),
        dtype=dtype,
        in_split=integer_list(args.in_split),
        out_split=integer_list(args.out_split),
        group_name=_text(args.group_name),
        group_description=_text(args.group_description),
        group_ranks=integer_list(args.group_ranks),
        group_size=to_int(args.group_size),
        sequence=to_int(args.sequence),
        peer_src=to_int(args.peer_src),
        peer_dst=to_int(args.peer_dst),
    )
    return parsed if parsed != CommArgs() else None


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
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else None


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
