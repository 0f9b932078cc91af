"""Recognising communication kernels and giving collectives one name each."""

from __future__ import annotations

import functools
import re

_KERNEL = re.compile(
    r"^(?:void )?(?:(?:nccl|rccl|ncclx)(?:Dev)?Kernel|ncclSymk|ncclSymDevKernel|mscclpp|mscclKernel)"
    r"|(?:one_shot|two_shot|multimem)\w*(?:all_reduce|all_gather|reduce_scatter)\w*kernel"
    r"|cross_device_reduce_|(?:\b|_)all_reduce_kernel\b|ShotAllReduceKernel|nvshmem\w*(?:alltoall|collective)",
    re.IGNORECASE,
)
# In this order: "ReduceScatter" must not be taken for "Reduce", nor "AllReduce".
_OPERATIONS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("all_to_all", re.compile(r"all_?to_?all", re.IGNORECASE)),
    ("reduce_scatter", re.compile(r"reduce_?scatter", re.IGNORECASE)),
    ("all_gather", re.compile(r"all_?gather", re.IGNORECASE)),
    ("all_reduce", re.compile(r"all_?reduce|cross_device_reduce", re.IGNORECASE)),
    ("send_recv", re.compile(r"send_?recv|\bp2p\b|isend|irecv|coalesced_p2p", re.IGNORECASE)),
    ("broadcast", re.compile(r"broadcast", re.IGNORECASE)),
    ("barrier", re.compile(r"barrier", re.IGNORECASE)),
    ("reduce", re.compile(r"reduce(?!_?scatter)", re.IGNORECASE)),
    ("gather", re.compile(r"gather", re.IGNORECASE)),
    ("scatter", re.compile(r"scatter", re.IGNORECASE)),
    ("send_recv", re.compile(r"^(?:\w+:)?(?:send|recv)\b", re.IGNORECASE)),
)

UNKNOWN = "unknown"
SYNCHRONISING = frozenset({"all_to_all", "all_reduce", "all_gather", "reduce_scatter", "barrier"})
"""Operations no member can finish before the last member has arrived."""


def is_communication_kernel(kernel_name: str) -> bool:
    """Whether a GPU kernel moves data between GPUs (NCCL, RCCL, MSCCL++, symmetric memory, custom)."""
    return _KERNEL.search(kernel_name) is not None


@functools.lru_cache(maxsize=4096)
def operation_of(name: str) -> str:
    """One name per operation, from a kernel, annotation or argument text; ``unknown`` if it says nothing."""
    head = name.split("(", maxsplit=1)[0]
    for operation, pattern in _OPERATIONS:
        if pattern.search(head):
            return operation
    return UNKNOWN


_ELEMENT_BYTES = {
    "double": 8, "float64": 8, "long": 8, "int64": 8, "long int": 8, "long long": 8, "int64_t": 8,
    "float": 4, "float32": 4, "int": 4, "int32": 4, "int32_t": 4, "unsigned int": 4,
    "half": 2, "float16": 2, "bfloat16": 2, "short": 2, "int16": 2,
    "byte": 1, "char": 1, "bool": 1, "uint8": 1, "int8": 1, "unsigned char": 1, "signed char": 1,
    "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1,
}  # fmt: skip


def element_bytes(dtype: str | None) -> int | None:
    """Bytes per element of a dtype as PyTorch's profiler writes it; None for an unknown one."""
    if dtype is None:
        return None
    return _ELEMENT_BYTES.get(dtype.lower().removeprefix("c10::").removeprefix("at::"))


def bus_factor(operation: str, ranks: int) -> float | None:
    """Bus bandwidth / algorithm bandwidth, as nccl-tests' PERFORMANCE.md defines it; None if undefined."""
    if ranks < 2:
        return None
    if operation == "all_reduce":
        return 2 * (ranks - 1) / ranks
    if operation in {"all_gather", "reduce_scatter", "all_to_all"}:
        return (ranks - 1) / ranks
    return 1.0 if operation in {"broadcast", "reduce"} else None


_IDS = ("int", "long", "bool")
_EXCHANGES = {"all_to_all", "reduce_scatter", "all_gather"}


def moves_vectors(operation: str, label: str | None, phase: str, dtype: str | None) -> bool:
    """Whether a collective moves embedding vectors or their gradients (not ids, not dense gradients).

    Quantized values travel as "unsigned char" or a float type, ids as "int" or "long".
    """
    if operation not in _EXCHANGES or phase == "sparse_data_dist":
        return False
    if operation != "all_to_all" and label is None:
        return False
    return dtype is None or not dtype.lower().startswith(_IDS)
