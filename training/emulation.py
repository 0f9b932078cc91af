"""Emulated accelerator time.

An operator that sleeps, so that ranks sharing a machine do not compete for its cores.

It is a dispatcher operator and not a bare ``time.sleep`` because the profiler then records it like any other
work.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch

_LIBRARY = torch.library.Library("training", "DEF")
_LIBRARY.define("emulated_compute(Tensor anchor, float milliseconds) -> ()")


@torch.library.impl(_LIBRARY, "emulated_compute", "CPU")
def _sleep(_anchor: torch.Tensor, milliseconds: float) -> None:
    time.sleep(milliseconds / 1000)


@torch.library.impl(_LIBRARY, "emulated_compute", "CUDA")
def _spin(anchor: torch.Tensor, milliseconds: float) -> None:
    # The clock of the specification; a GPU that runs slower or faster spins longer or shorter.
    cycles_per_ms = torch.cuda.get_device_properties(anchor.device).clock_rate
    torch.cuda._sleep(int(milliseconds * cycles_per_ms))


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

    @torch.compiler.disable  # a compiler may drop an operator that returns nothing
    def forward(self, value: torch.Tensor) -> torch.Tensor:
        """Return ``value`` unchanged."""
        result: torch.Tensor = _EmulatedLayer.apply(value, self.forward_ms, self.backward_ms)
        return result


def watch_lookups(
    model: torch.nn.Module,
    us_per_1k_ids: float,
    before: Callable[[torch.device], object],
    after: Callable[[], object],
) -> None:
    """Call ``before`` and ``after`` around every lookup of the sharded tables in ``model``.

    With ``us_per_1k_ids`` a lookup also takes time by the ids this rank looks up. What makes the owner of a
    hot partition slow on a GPU is memory traffic by ids; on a CPU that shares its cores with other ranks the
    same traffic shows the machine.
    """

    def begin(_lookup: torch.nn.Module, arguments: tuple[Any, ...]) -> None:
        features = arguments[0]
        before(features.lengths().device)
        emulated_compute(features.lengths(), features.values().numel() / 1000 * us_per_1k_ids / 1000)

    def end(_lookup: torch.nn.Module, _arguments: tuple[Any, ...], _vectors: object) -> None:
        after()

    for module in model.modules():
        # ``_lookups`` is where TorchRec's sharded modules keep the local part of the tables.
        for lookup in getattr(module, "_lookups", []):
            lookup.register_forward_pre_hook(begin)
            lookup.register_forward_hook(end)
