"""Normalized entropy by arithmetic, and windows of steps over ranks."""

import math
from collections.abc import Iterator

import pytest
import torch
import torch.distributed as dist

from training.metrics import LossNotFiniteError, Metrics, normalized_entropy
from training.model import Prediction


@pytest.fixture
def one_rank() -> Iterator[None]:
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def prediction(loss: float, clicks: int, examples: int = 4) -> Prediction:
    labels = torch.tensor([1.0] * clicks + [0.0] * (examples - clicks))
    return Prediction(torch.tensor(loss), torch.zeros(examples), labels)


def test_guessing_the_click_rate_gives_one() -> None:
    # A constant guess of the rate p has the loss -(p ln p + (1-p) ln(1-p)).
    loss = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75))
    assert normalized_entropy(loss, 0.25) == pytest.approx(1.0)
    assert normalized_entropy(loss / 2, 0.25) == pytest.approx(0.5)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_without_both_labels_there_is_none(rate: float) -> None:
    assert normalized_entropy(0.3, rate) is None


@pytest.mark.usefixtures("one_rank")
def test_a_window_weighs_steps_by_examples() -> None:
    metrics = Metrics()
    metrics.add(prediction(0.6, clicks=1, examples=4))
    metrics.add(prediction(0.2, clicks=3, examples=12))
    steps, stop = metrics.close(next_step=7, stop_asked=False)

    (window,) = metrics.curve
    assert (window.first, window.steps, window.examples, stop) == (5, 2, 16, False)
    assert window.loss == pytest.approx((0.6 * 4 + 0.2 * 12) / 16)
    assert window.click_rate == pytest.approx(4 / 16)
    assert [step["loss"] for step in steps] == [pytest.approx(0.6), pytest.approx(0.2)]
    assert metrics.pending_steps == 0


@pytest.mark.usefixtures("one_rank")
def test_a_nan_names_its_step() -> None:
    metrics = Metrics()
    metrics.add(prediction(0.6, clicks=1))
    metrics.add(prediction(float("nan"), clicks=1))
    with pytest.raises(LossNotFiniteError, match=r"the loss is nan at step 11: .*dense\.clip_norm"):
        metrics.close(next_step=12, stop_asked=False)


@pytest.mark.usefixtures("one_rank")
def test_windows_go_through_a_checkpoint() -> None:
    metrics, again = Metrics(), Metrics()
    metrics.add(prediction(0.6, clicks=1))
    assert metrics.close(next_step=1, stop_asked=True)[1] is True
    again.load_state_dict(metrics.state_dict())
    assert again.curve == metrics.curve
