"""Loss and normalized entropy over all ranks, read from the device once per window of steps."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
import torch.distributed as dist

from training.model import Prediction


class LossNotFiniteError(RuntimeError):
    """The loss became NaN or infinite; every rank raises it after the same step."""


@dataclass(frozen=True)
class Window:
    """Measurements over all ranks for the steps ``first`` to ``first + steps - 1``.

    ``normalized_entropy`` is the mean loss over the entropy of the window's click rate: 1 is what guessing
    the rate gives, and less is better. None without both labels in the window.
    """

    first: int
    steps: int
    examples: int
    loss: float
    click_rate: float
    normalized_entropy: float | None


@dataclass
class Metrics:
    """The steps since the last window, and the windows so far."""

    curve: list[Window] = field(default_factory=list)
    _pending: list[torch.Tensor] = field(default_factory=list)

    def add(self, prediction: Prediction) -> None:
        """Keep a step's sums on its device; nothing waits."""
        labels = prediction.labels
        count = torch.full_like(prediction.loss, labels.numel())
        self._pending.append(torch.stack([prediction.loss * count, labels.sum(), count]))

    @property
    def pending_steps(self) -> int:
        """Steps since the last window."""
        return len(self._pending)

    def close(self, next_step: int, stop_asked: bool) -> tuple[list[dict[str, float | None]], bool]:
        """End the window before ``next_step``; every rank calls it after the same step.

        Return (loss and normalized entropy of each of its steps, whether any rank was asked to stop).
        Raises LossNotFiniteError, on all ranks alike because all see the same sums.
        """
        steps = len(self._pending)
        sums = torch.stack(self._pending).double()  # [steps, (loss, clicks, examples)]
        asked = torch.tensor([float(stop_asked)], device=sums.device, dtype=sums.dtype)
        together = torch.cat([sums.flatten(), asked])
        dist.all_reduce(together)
        numbers = together.tolist()
        stop, rows = numbers.pop() > 0, torch.tensor(numbers).double().view(steps, 3)
        self._pending.clear()
        for offset, loss in enumerate(rows[:, 0].tolist()):
            if not math.isfinite(loss):
                raise LossNotFiniteError(
                    f"the loss is {loss} at step {next_step - steps + offset}: training stops. Lower "
                    "loop.embedding_lr or loop.dense_lr, or set dense.clip_norm"
                )
        loss, clicks, examples = rows.sum(0).tolist()
        self.curve.append(
            Window(
                first=next_step - steps,
                steps=steps,
                examples=int(examples),
                loss=loss / examples,
                click_rate=clicks / examples,
                normalized_entropy=normalized_entropy(loss / examples, clicks / examples),
            )
        )
        return [_of_step(*row) for row in rows.tolist()], stop

    def state_dict(self) -> dict[str, Any]:
        """Return what a checkpoint keeps; windows are closed before one is written."""
        return {"curve": [asdict(window) for window in self.curve]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Continue from ``state``."""
        self.curve = [Window(**window) for window in state["curve"]]
        self._pending.clear()


def _of_step(loss: float, clicks: float, examples: float) -> dict[str, float | None]:
    mean = loss / examples
    return {"loss": mean, "normalized_entropy": normalized_entropy(mean, clicks / examples)}


def normalized_entropy(loss: float, click_rate: float) -> float | None:
    """Return loss / entropy of the click rate, both in nats; None where the rate is 0 or 1."""
    if not 0 < click_rate < 1:
        return None
    entropy = -(click_rate * math.log(click_rate) + (1 - click_rate) * math.log(1 - click_rate))
    return loss / entropy
