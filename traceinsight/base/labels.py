"""What the annotations of PyTorch and TorchRec mean: which phase of a training step a label belongs to.

Sources: ``record_function`` texts in torchrec/distributed (train_pipeline, dist_data, comm_ops,
embedding_types, model_parallel) of the 2022-2026 releases, and torch.profiler's own labels.
"""

from __future__ import annotations

import re
from typing import Literal

Phase = Literal["input", "sparse_data_dist", "forward", "backward", "optimizer", "replica_sync", "other"]
PHASES: tuple[Phase, ...] = (
    "input", "sparse_data_dist", "forward", "backward", "optimizer", "replica_sync", "other",
)  # fmt: skip

STEP_LABEL = re.compile(r"^ProfilerStep#(\d{1,18})$")  # more digits are no step number, and no int64
FORWARD_LABELS = ("## forward ##", "DistributedDataParallel.forward", "DistributedModelParallel.forward")
INPUT_LABEL = re.compile(r"^enumerate\(DataLoader\)|## (load_batch|data_load|next_batch|wait_for_batch)\b")
LOOKUP_LABEL = re.compile(r"^\[lookup\]")

_BATCH_INDEX = re.compile(r"(?<=[ _#])\d+(?= ##$|$)")
_PHASE_PATTERNS: tuple[tuple[Phase, re.Pattern[str]], ...] = (
    ("replica_sync", re.compile(r"dmp_collection_sync")),
    ("backward", re.compile(r"^## (backward|emb_backward)|_bwd|_bw \(|^autograd::engine")),
    ("optimizer", re.compile(r"^## (optimizer|zero_grad)|^Optimizer\.")),
    ("input", re.compile(INPUT_LABEL.pattern + r"|^## copy_batch_to_(gpu|device)")),
    (
        "sparse_data_dist",
        re.compile(r"sparse_data_dist|all2all_data:|^## sdd_|^\[(splits|tensors)_dist\]|^## KJT"),
    ),
    (
        "forward",
        re.compile(
            r"^## forward|\.forward$|_fwd|^\[(lookup|output_dist|output_dist_wait|input_dist)\]"
            r"|^## (PooledEmbeddings|Embedding\w*)Awaitable|^## reduce_scatter_base ##"
        ),
    ),
)


def without_batch_index(label: str) -> str:
    """The label without a batch number in it, so that it is the same in every step."""
    return _BATCH_INDEX.sub("", label).replace("  ", " ")


def phase_of(label: str) -> Phase | None:
    """The phase a label stands for, or None when it says nothing about the phase."""
    for phase, pattern in _PHASE_PATTERNS:
        if pattern.search(label):
            return phase
    return None


def is_payload_label(label: str) -> bool:
    """Whether a label names a communication (rather than a phase around it or a wait for it)."""
    framed = label.startswith(("## ", "["))
    waits = " wait()" in label or "_wait]" in label
    return framed and not waits and not _PHASE_FRAME.search(label)


_PHASE_FRAME = re.compile(
    r"^## (forward|backward|optimizer|zero_grad|sparse_data_dist|start_sparse_data_dist"
    r"|wait_sparse_data_dist|copy_batch_to_\w+|load_batch|data_load|wait_for_batch|forward:\w+)\b(?!:)"
)
