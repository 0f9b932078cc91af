"""What kind of event a category (and, in older traces, a name) stands for."""

from __future__ import annotations

import re

from traceinsight.trace.recording import EventKind

_BY_CATEGORY = {
    "cpu_op": EventKind.CPU_OP,
    "operator": EventKind.CPU_OP,
    "cpu_instant_event": EventKind.OTHER,
    "user_annotation": EventKind.ANNOTATION,
    "runtime": EventKind.RUNTIME,
    "kernel": EventKind.KERNEL,
    "concurrent_kernel": EventKind.KERNEL,
    "gpu_memcpy": EventKind.MEMCPY,
    "memcpy": EventKind.MEMCPY,
    "gpu_memset": EventKind.MEMSET,
    "memset": EventKind.MEMSET,
    "gpu_user_annotation": EventKind.GPU_ANNOTATION,
    "python_function": EventKind.PYTHON,
    "python": EventKind.PYTHON,
    "overhead": EventKind.OVERHEAD,
}
_RUNTIME_SUFFIXES = ("_runtime", "_driver")

# record_function scopes that the old schema, and some exporters, write with the category of an operator.
_ANNOTATION_NAME = re.compile(
    r"ProfilerStep#\d+|##.*##|(?:nccl|gloo|mpi|ucc):|enumerate\(DataLoader\)|Optimizer\.(?:step|zero_grad)#"
)

PSEUDO_CATEGORIES = frozenset({"trace"})
"""The profiler's own span over the whole recording: no event of the program."""

GPU_FUNCTIONS_PID = "CUDA functions"
"""Where the old autograd profiler, which knows no categories, puts kernels."""


def kind_of_category(category: str) -> EventKind:
    """The kind; a missing category (bare lists of the autograd profiler) means an operator."""
    lowered = category.lower()
    if not lowered:
        return EventKind.CPU_OP
    if lowered.endswith(_RUNTIME_SUFFIXES):
        return EventKind.RUNTIME
    return _BY_CATEGORY.get(lowered, EventKind.OTHER)


def is_annotation_name(name: str) -> bool:
    """Whether a "CPU operator" of this name is an annotation in truth."""
    return _ANNOTATION_NAME.match(name) is not None
