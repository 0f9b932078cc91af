"""Emulated accelerator time.

An operator that sleeps, so that ranks sharing a machine do not compete for its cores.

It is a dispatcher operator and not a bare ``time.sleep`` because the profiler then records it like any other
work.
"""

from __future__ import annotations

import time
from typing import Any

import torch

_LIBRARY = torch.library.Library("training", "DEF")
_LIBRARY.define("emulated_compute(Tensor anchor, float milliseconds) -> ()")


@torch.library.impl(_LIBRARY, "emulated_compute", "CPU")
def _sleep(_anchor: torch.Tensor, milliseconds: float) -> None:
    time.sleep(milliseconds / 1000)


def emulated_compute(anchor: torch.Tensor, milliseconds: float) -> None:
    """Occupy this rank for ``milliseconds``.

    Seen in traces as the operator ``training::emulated_compute``.
    """
    if milliseconds > 0:
        torch.ops.training.emulated_compute(anchor.detach(), milliseconds)


class _EmulatedLayer(torch.autograd.Function):
    """Identity that takes its time, in forward and in backward."""

    @staticmethod
    def forward(ctx: Any, value: torch.Tensor, forward_ms: float, backward_ms: float) -> torch.Tensor:
        ctx.backward_ms = backward_ms
        emulated_compute(value, forward_ms)
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, None, None]:
        emulated_compute(gradients[0], ctx.backward_ms)
        return gradients[0], None, None


class EmulatedLayer(torch.nn.Module):
    """A layer without parameters that needs ``forward_ms`` and ``backward_ms`` milliseconds."""

    def __init__(self, forward_ms: float, backward_ms: float) -> None:
        super().__init__()
        self.forward_ms = forward_ms
        self.backward_ms = backward_ms

    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Return ``value`` unchanged."""
        result: torch.Tensor = _EmulatedLayer.apply(value, self.forward_ms, self.backward_ms)
        return result
