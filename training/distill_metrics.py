"""What a model predicts and what it costs: normalized entropy, AUC, parameters and latency."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from training.metrics import normalized_entropy


@dataclass(frozen=True)
class Report:
    """One model's line. ``latency_ms`` is the median over batches of ``batch`` examples on this machine."""

    name: str
    normalized_entropy: float | None
    auc: float | None
    parameters: int
    batch: int
    latency_ms: float | None


def auc(scores: torch.Tensor, labels: torch.Tensor) -> float | None:
    """Return the probability that a click scores above a non-click, ties counting half.

    ``scores`` and ``labels`` (0 or 1) are [N]. From the ranks (Mann and Whitney); None without both labels.
    """
    clicks = labels > 0.5
    positives = int(clicks.sum())
    negatives = labels.numel() - positives
    if positives == 0 or negatives == 0:
        return None
    # Mean rank of equal scores: half a place for each pair that is tied.
    _, group, sizes = torch.unique(scores, return_inverse=True, return_counts=True)
    last = sizes.cumsum(0).double()
    ranks = (last - (sizes.double() - 1) / 2)[group]
    above = ranks[clicks].sum().item() - positives * (positives + 1) / 2
    return above / (positives * negatives)


def entropy_of(logits: torch.Tensor, labels: torch.Tensor) -> float | None:
    """Return the normalized entropy of predictions: mean log loss over the entropy of the click rate."""
    loss = nn.functional.binary_cross_entropy_with_logits(logits.double(), labels.double()).item()
    return normalized_entropy(loss, labels.double().mean().item())


def parameters_of(model: nn.Module) -> int:
    """Return the number of values that serving must hold."""
    return sum(parameter.numel() for parameter in model.parameters())


def median_ms(action: Callable[[], object], repeats: int = 20, warmup: int = 3) -> float:
    """Return the median milliseconds of ``action``."""
    for _ in range(warmup):
        action()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        action()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)
